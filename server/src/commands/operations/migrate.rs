//! `payments-server migrate`: moves a whole store to another place, and proves that both contain the same.
//!
//! With each batch, the target stores the migration's id and progress. So an interrupted migration continues after its last
//! batch, and nobody takes a part of a store for a whole one.

mod compare;
mod ends;
mod moving;

use self::ends::{Source, Target};
use super::{check::check_records, open::interrupted};
use crate::{
    cli::{CommandError, MigrateArgs},
    log::{self, terminal::Output},
    store::{Contents, Location, Migration, Snapshot},
};

/// What to do if the stores differ before the migration ends.
const DURING_THE_MIGRATION: &str = "one of them was changed during the migration: empty the target and run it again";
/// What to do if the stores differ after the migration has ended.
const AFTER_THE_END: &str = "one of them was changed after the migration had finished: keep that one, or empty the target and \
                             run it again to move the source as it is now";

/// Moves every record from one store to another. Prints the number of records of each kind, and their digest.
pub async fn migrate(args: MigrateArgs) -> Result<(), CommandError> {
    let MigrateArgs { from, to, from_password_file, to_password_file, json } = args;
    let from = Location::new(&from, from_password_file.as_deref())?;
    let to = Location::new(&to, to_password_file.as_deref())?;
    let moving = tokio::task::spawn_blocking(move || move_store(&from, to));
    let moved = tokio::select! {
        moved = moving => moved??,
        interrupted = interrupted() => {
            interrupted?;
            return Err("interrupted; run it again with the same --from and --to, and it goes on from here".into());
        }
    };
    print(&moved, json)
}

/// Moves a store. Returns the contents of both stores, which are equal. Blocks a thread, on which no tasks may run.
fn move_store(from: &Location, to: Location) -> Result<Contents, CommandError> {
    let source = Source::open(from)?;
    let moved = Target::open(to).and_then(|target| {
        let moved = move_all(&source, &from.to_string(), &target);
        target.close();
        moved
    });
    source.close();
    moved
}

fn move_all(source: &Source, from: &str, target: &Target) -> Result<Contents, CommandError> {
    let begun = begin(source.store(), from, target)?;
    refuse_damaged(source.store(), "the source is damaged", "run payments-server check on it, and restore it first")?;
    // A migration that is run again after its end moves nothing. Either store may have changed since.
    let is_finished = begun.moved.is_some();
    let migration = if is_finished { begun } else { moving::move_values(source.store(), target, begun)? };
    let if_different = if is_finished { AFTER_THE_END } else { DURING_THE_MIGRATION };
    let contents = target.read(|moved| {
        let contents = compare::compare(source.store(), moved, migration.records, if_different)?;
        refuse_damaged(moved, "the migrated target is damaged", "empty it and run it again")?;
        Ok(contents)
    })?;
    source.refuse_if_unlocked()?;
    if !is_finished {
        target.note(&Migration { moved: Some(contents.clone()), ..moving::next(&migration) })?;
    }
    Ok(contents)
}

/// Begins a migration, or finds its progress.
fn begin(source: &dyn Snapshot, from: &str, target: &Target) -> Result<Migration, CommandError> {
    let id = moving::identity(source)?;
    let (found, is_empty) = target.read(|store| Ok((store.migration()?, store.values_after(None, 1)?.is_empty())))?;
    match found {
        Some(found) if found.id == id => {
            match &found.moved {
                None => log::say(format_args!("{} values were moved before; the migration goes on", found.records)),
                Some(_) => {
                    log::say("this migration was finished before; nothing is moved, and the stores are compared")
                }
            }
            Ok(found)
        }
        Some(Migration { from: other, moved: None, .. }) => Err(format!(
            "the target holds a part of {other}: its migration is unfinished, and {from} is another store or has changed \
             since; finish that migration, or empty the target and run this one again"
        )
        .into()),
        _ if !is_empty => {
            Err("the target holds records; name a missing or empty directory, or an empty database".into())
        }
        _ => {
            let version = found.map_or(0, |found| found.version + 1);
            let begun = Migration { version, id, from: from.to_owned(), after: None, records: 0, moved: None };
            target.note(&begun)?;
            // From here on, no server opens the target. Check that none has it open already.
            target.refuse_if_served()?;
            Ok(begun)
        }
    }
}

fn refuse_damaged(store: &dyn Snapshot, what: &str, what_to_do: &str) -> Result<(), CommandError> {
    match &check_records(store)?.findings[..] {
        [] => Ok(()),
        [first, others @ ..] => {
            let (record, found, others) = (&first.record, &first.what, others.len());
            Err(format!("{what}: {record}: {found}; {others} more; {what_to_do}").into())
        }
    }
}

fn print(moved: &Contents, is_json: bool) -> Result<(), CommandError> {
    let mut out = Output::new();
    if is_json {
        return Ok(out.json(moved)?);
    }
    for (kind, records) in &moved.records {
        out.line(format_args!("{}: {records}", kind.replace('_', " ")))?;
    }
    Ok(out.line(format_args!("both stores hold these records and pass the check; SHA-256 {}", moved.sha256))?)
}
