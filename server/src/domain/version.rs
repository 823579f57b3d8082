//! The versions of records.

/// Whether a record has never changed. Its version is then left out of its JSON, as older servers did.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
pub(super) fn is_first(version: &u64) -> bool {
    *version == 0
}
