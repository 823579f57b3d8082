//! Why a command failed.

/// An error that ends a command. It is printed for the operator.
pub type CommandError = Box<dyn std::error::Error + Send + Sync>;
