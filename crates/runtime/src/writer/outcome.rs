//! Acceptable failures of writes.

use super::WriteError;

/// Accepts certain failures of a write: the wanted state is reached, or cannot be reached any more.
///
/// ```
/// # use steersman_base::{Meta, Resource};
/// # use steersman_runtime::writer::{Behalf, Outcome};
/// # use steersman_runtime::{Propagation, Reason, WriteError};
/// # async fn example(write: Behalf<'_>, pods: &Resource, pod: &Meta, why: &dyn Reason) -> Result<(), WriteError> {
/// write.delete(pods, pod, Propagation::Background, why).await.ok_if_gone().ok_if_replaced()
/// # }
/// ```
pub trait Outcome: Sized {
    /// Accepts the failures for which `is_fine` holds.
    ///
    /// # Errors
    /// Any other failure.
    fn ok_if(self, is_fine: impl FnOnce(&WriteError) -> bool) -> Result<(), WriteError>;

    /// Accepts that the object does not exist: it was deleted, or its namespace was.
    ///
    /// # Errors
    /// Any other failure.
    fn ok_if_gone(self) -> Result<(), WriteError> {
        self.ok_if(|error| matches!(error, WriteError::NotFound))
    }

    /// Accepts that the object was replaced or has changed: of a delete, the object that was meant is gone; of another
    /// write, the change has an event of its own.
    ///
    /// # Errors
    /// Any other failure.
    fn ok_if_replaced(self) -> Result<(), WriteError> {
        self.ok_if(|error| matches!(error, WriteError::Conflict))
    }

    /// Accepts that an object of this name exists.
    ///
    /// # Errors
    /// Any other failure.
    fn ok_if_exists(self) -> Result<(), WriteError> {
        self.ok_if(|error| matches!(error, WriteError::AlreadyExists))
    }

    /// Accepts that the namespace is terminating: nothing can be created in it.
    ///
    /// # Errors
    /// Any other failure.
    fn ok_if_terminating(self) -> Result<(), WriteError> {
        self.ok_if(|error| matches!(error, WriteError::NamespaceTerminating))
    }
}

// === impl Result ===

impl<T> Outcome for Result<T, WriteError> {
    fn ok_if(self, is_fine: impl FnOnce(&WriteError) -> bool) -> Result<(), WriteError> {
        match self {
            Ok(_) => Ok(()),
            Err(error) if is_fine(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = fn(Result<(), WriteError>) -> Result<(), WriteError>;

    #[test]
    fn each_says_one_failure_is_fine_and_no_other() {
        let errors: [fn() -> WriteError; 8] = [
            || WriteError::NotFound,
            || WriteError::Conflict,
            || WriteError::AlreadyExists,
            || WriteError::NamespaceTerminating,
            || WriteError::NotLeader,
            || WriteError::unknown("no answer"),
            || WriteError::Invalid("no name".into()),
            || WriteError::Unreachable("nobody there".into()),
        ];
        let checks: [Check; 4] =
            [Outcome::ok_if_gone, Outcome::ok_if_replaced, Outcome::ok_if_exists, Outcome::ok_if_terminating];
        for (row, error) in errors.iter().enumerate() {
            for (column, check) in checks.iter().enumerate() {
                assert_eq!(check(Err(error())).is_ok(), row == column, "{}", error());
            }
        }
        for check in checks {
            assert!(check(Ok(())).is_ok());
        }
    }

    #[test]
    fn several_can_be_fine() {
        let gone_or_replaced = |error| Err::<u8, _>(error).ok_if_gone().ok_if_replaced();
        assert!(gone_or_replaced(WriteError::NotFound).is_ok());
        assert!(gone_or_replaced(WriteError::Conflict).is_ok());
        assert!(gone_or_replaced(WriteError::AlreadyExists).is_err());
        assert!(gone_or_replaced(WriteError::unknown("")).is_err(), "an unknown outcome is never fine");
    }
}
