//! `payments-server customers`: exports and erases what is held on a customer.

use super::connection::{Connection, Place, unexpected};
use crate::{
    cli::{Admin, CommandError, CustomersCommand},
    domain::ErasePolicy,
    log::terminal::{Output, visible_json},
    service::{AdminReply, AdminRequest, CustomerName, CustomerReply, CustomerRequest, Erased},
};

pub async fn run(Admin { command, args }: Admin<CustomersCommand>) -> Result<(), CommandError> {
    let mut connection = Connection::new(Place::of(&args)?);
    let outcome = match command {
        CustomersCommand::Export(customer) => export(&mut connection, &customer.name()).await,
        CustomersCommand::Erase { customer, metadata, lines, .. } => {
            let request = CustomerRequest::Erase { of: customer.name(), policy: ErasePolicy { metadata, lines } };
            erase(&mut connection, request, args.json).await
        }
    };
    connection.close().await?;
    outcome
}

/// Prints part after part.
async fn export(connection: &mut Connection, of: &CustomerName) -> Result<(), CommandError> {
    let mut after = None;
    loop {
        let CustomerReply::Held { held, next } =
            ask(connection, CustomerRequest::Export { of: of.clone(), after }).await?
        else {
            return Err(unexpected());
        };
        let mut out = Output::new();
        held.iter().try_for_each(|json| out.line(format_args!("{}", visible_json(json))))?;
        if next.is_none() {
            return Ok(());
        }
        after = next;
    }
}

async fn ask(connection: &mut Connection, request: CustomerRequest) -> Result<CustomerReply, CommandError> {
    match connection.need(AdminRequest::Customers(request)).await? {
        AdminReply::Customers { customers } => Ok(customers),
        _ => Err(unexpected()),
    }
}

/// Erases part after part.
async fn erase(connection: &mut Connection, request: CustomerRequest, json: bool) -> Result<(), CommandError> {
    let mut all = Erased::default();
    let remains = loop {
        let CustomerReply::Erased { erased, remains } = ask(connection, request.clone()).await? else {
            return Err(unexpected());
        };
        all.add(erased);
        if !all.has_more {
            break remains;
        }
    };
    let (mut out, kept) = (Output::new(), all.kept.len());
    if json {
        out.json(&CustomerReply::Erased { erased: all, remains })?;
    } else {
        let Erased { payments, search_entries, events, deliveries, stored_responses, kept, .. } = all;
        out.line(format_args!(
            "erased in {payments} payments, {search_entries} search entries, {events} events, {deliveries} deliveries and \
             {stored_responses} stored responses"
        ))?;
        out.line(format_args!("{remains}"))?;
        kept.iter().try_for_each(|(payment, why)| out.line(format_args!("{payment} keeps its data: {why}")))?;
    }
    match kept {
        0 => Ok(()),
        kept => {
            Err(format!("{kept} payments still need their customer's data; run this again when they do not").into())
        }
    }
}
