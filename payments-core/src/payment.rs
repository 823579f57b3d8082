//! The payment, as it stands on the wire.

use crate::{
    Amount, AppId, Currency, Customer, DeveloperId, Environment, FeeRate, Metadata, PaymentId, RawStatus, Refund,
    Status, Timestamp, aliased::aliased_resource, open_enum::open_enum,
};

aliased_resource! {
    /// A payment (API specification, "Payment").
    ///
    /// Server and client share this type. The server makes one with [`create`](crate::create) and moves it with
    /// [`decide`](crate::decide), which keep its fields in agreement; a client reads what the server says.
    pub struct Payment {
        /// Identifier of the payment and of its checkout session.
        id: PaymentId = "id",
        /// Whose payment it is.
        developer_id: DeveloperId = "developerId",
        /// The developer app it was made through, if any.
        app_id: Option<AppId> = "appId",
        /// The merchant's own reference; the payment's id unless the merchant gave one.
        merchant_transaction_id: String = "merchantTransactionId",
        /// What the customer pays, in major units on the wire.
        amount: Amount = "amount",
        /// The currency of every amount on this payment.
        currency: Currency = "currency",
        /// Where it stands, for a merchant.
        status: Status = "status",
        /// Where it stands inside the platform.
        raw_status: RawStatus = "rawStatus",
        /// Whether real money moves.
        environment: Environment = "environment",
        /// Whether it was made with a test key.
        is_simulated: bool = "isSimulated",
        /// What the customer reads on the checkout page.
        description: Option<String> = "description",
        /// Address to send the customer to.
        checkout_url: String = "checkoutUrl" | "checkout_url",
        /// The platform's share of the amount.
        platform_fee_amount: Amount = "platformFeeAmount" | "platform_fee",
        /// The rate of that share, a percentage on the wire.
        fee_percentage: FeeRate = "feePercentage" | "platformFeeRate" | "platform_fee_rate",
        /// What the merchant gets: the amount less the platform's share.
        net_amount: Amount = "netAmount" | "net_amount",
        /// Who pays, as far as the merchant said.
        customer: Customer = "customer"
            (mirrored: name as "customerName", email as "customerEmail", phone as "customerPhone"),
        /// How it was paid, once that is known.
        payment_method: Option<PaymentMethod> = "paymentMethod",
        /// The merchant's own data, byte for byte as it was given.
        metadata: Metadata = "metadata",
        /// Where the customer goes after paying.
        success_url: String = "success_url",
        /// Where the customer goes otherwise.
        cancel_url: String = "cancel_url",
        /// The refund, once there is one.
        refund: Option<Refund> = "refund" (omitted if None),
        /// When the approval was confirmed.
        paid_at: Option<Timestamp> = "paid_at",
        /// When the payment was created.
        created_at: Timestamp = "created_at" | "createdAt",
        /// When it last changed.
        updated_at: Timestamp = "updatedAt",
    }
}

open_enum! {
    /// How a payment is made.
    pub enum PaymentMethod {
        /// Mobile financial services, for BDT.
        Mfs = "mfs",
        /// A card, for USD.
        Card = "card",
        /// The simulator of a test session.
        Test = "test",
    }
}
