//! The versions of records.

/// Whether a record has never changed. Versions that did not count changes stored such records without a number.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
pub(super) fn is_first(version: &u64) -> bool {
    *version == 0
}
