//! The payment resource.

use crate::{
    Amount, AppId, Currency, Customer, DeveloperId, Dispute, Disputes, Environment, FeeRate, LineItem, Metadata, Money,
    PaymentId, RawStatus, Refund, Refunds, Status, Timestamp, aliased::aliased_resource, open_enum::open_enum,
};

aliased_resource! {
    /// A payment (API specification, "Payment").
    ///
    /// Server and client share this type. The server creates payments with [`create`](crate::create) and changes them
    /// with [`decide`](crate::decide), which keep the fields consistent.
    #[derive(Debug)]
    pub struct Payment {
        /// The id of the payment and its checkout session.
        id: PaymentId = "id",
        /// The payment's developer.
        developer_id: DeveloperId = "developerId",
        /// The payment's developer app, if any.
        app_id: Option<AppId> = "appId",
        /// The merchant's reference, by default the payment's id.
        merchant_transaction_id: String = "merchantTransactionId",
        /// What the customer pays, in major units on the wire.
        amount: Amount = "amount",
        /// The currency of all amounts of this payment.
        currency: Currency = "currency",
        /// The public status.
        status: Status = "status",
        /// The internal status.
        raw_status: RawStatus = "rawStatus",
        /// Live or test.
        environment: Environment = "environment",
        /// Whether this is a test payment.
        is_simulated: bool = "isSimulated",
        /// The description on the checkout page.
        description: Option<String> = "description",
        /// The order's lines, if the merchant gave them.
        line_items: Option<Vec<LineItem>> = "lineItems" (omitted if None),
        /// The ways by which it can be paid, if the merchant named them.
        ways: Option<Vec<String>> = "ways" (omitted if None),
        /// The URL of the checkout page.
        checkout_url: String = "checkoutUrl" | "checkout_url",
        /// The platform's fee.
        platform_fee_amount: Amount = "platformFeeAmount" | "platform_fee",
        /// The fee rate, a percentage on the wire.
        fee_percentage: FeeRate = "feePercentage" | "platformFeeRate" | "platform_fee_rate",
        /// What the merchant gets: the amount minus the fee.
        net_amount: Amount = "netAmount" | "net_amount",
        /// The customer, as the merchant described them.
        customer: Customer = "customer"
            (mirrored: name as "customerName", email as "customerEmail", phone as "customerPhone"),
        /// The payment method, once known.
        payment_method: Option<PaymentMethod> = "paymentMethod",
        /// The gateway's id of the transaction that paid it, such as the TrxID that bKash shows the customer.
        gateway_transaction_id: Option<String> = "gatewayTransactionId" (omitted if None),
        /// The merchant's metadata, byte for byte.
        metadata: Metadata = "metadata",
        /// Where to send the customer after a successful payment.
        success_url: String = "success_url",
        /// Where to send the customer otherwise.
        cancel_url: String = "cancel_url",
        /// The refunds, oldest first. The API also serves the last one and the sum of all:
        /// [`refund`](Payment::refund) and [`amount_refunded`](Payment::amount_refunded).
        refunds: Refunds = "refunds" (omitted if empty) (summed: last as "refund", total as "amountRefunded"),
        /// The disputes, oldest first. The API also serves the last one: [`dispute`](Payment::dispute).
        disputes: Disputes = "disputes" (omitted if empty) (summed: last as "dispute"),
        /// When the payment was confirmed.
        paid_at: Option<Timestamp> = "paid_at",
        /// When the payment was created.
        created_at: Timestamp = "created_at" | "createdAt",
        /// When the payment last changed.
        updated_at: Timestamp = "updatedAt",
    }
}

impl Payment {
    /// The last refund, if any: `refund`.
    #[must_use]
    pub fn refund(&self) -> Option<&Refund> {
        self.refunds.last()
    }

    /// The sum of all refunds: `amountRefunded`.
    #[must_use]
    pub fn amount_refunded(&self) -> Amount {
        self.refunds.total()
    }

    /// Erases who the customer is, and if asked the metadata, or the texts of lines, description and reasons of refunds. The rest
    /// of the payment stays.
    pub fn erase_customer(&mut self, metadata: bool, lines: bool) {
        self.customer = Customer::default();
        if metadata {
            self.metadata = Metadata::default();
        }
        if lines {
            (self.description, self.line_items) = (None, None);
            let ids: Vec<_> = self.refunds.iter().map(|refund| refund.id.clone()).collect();
            ids.iter().for_each(|id| self.refunds.find_mut(id).into_iter().for_each(|refund| refund.reason = None));
            // The reason stands beside the payment in the event of a refund.
            self.unknown.erase("refund_reason");
        }
    }

    /// The amount and its currency.
    #[must_use]
    pub const fn money(&self) -> Money {
        Money::new(self.amount, self.currency)
    }

    /// Whether its money was taken. It may be refunded since.
    #[must_use]
    pub fn was_paid(&self) -> bool {
        matches!(self.raw_status, RawStatus::Paid | RawStatus::Refunded)
    }

    /// The last dispute, if any: `dispute`.
    #[must_use]
    pub fn dispute(&self) -> Option<&Dispute> {
        self.disputes.last()
    }

    /// What is not refunded. Disputes may hold some of it.
    #[must_use]
    pub fn amount_not_refunded(&self) -> Amount {
        self.amount.checked_sub(self.amount_refunded()).unwrap_or(Amount::ZERO)
    }

    /// What disputes hold of what is not refunded. See [`Dispute::amount_held`].
    #[must_use]
    pub fn amount_disputed(&self) -> Amount {
        let held = self.disputes.iter().map(|dispute| dispute.amount_held().as_minor()).fold(0, u64::saturating_add);
        self.amount_not_refunded().min(Amount::from_minor(held))
    }

    /// What is left to refund of a paid payment: what is not refunded and not disputed.
    #[must_use]
    pub fn amount_left(&self) -> Amount {
        self.amount_not_refunded().checked_sub(self.amount_disputed()).unwrap_or(Amount::ZERO)
    }
}

open_enum! {
    /// A payment method.
    pub enum PaymentMethod {
        /// Mobile financial services, for BDT.
        Mfs = "mfs",
        /// A card, for USD.
        Card = "card",
        /// The simulator of a test session.
        Test = "test",
    }
}
