package fault

// Code names what went wrong. Codes are stored and sent, so one that has been released never changes its meaning.
type Code string

// Class groups codes by who has to act. The server maps a class to an HTTP status, in one place.
type Class uint8

// The classes.
const (
	ClassInternal    Class = iota // a defect or an unexpected condition of Tandem itself
	ClassInvalid                  // what was given is wrong; giving the same again cannot help
	ClassNotFound                 // what was named does not exist, or not for this caller
	ClassConflict                 // it exists, but its state does not allow this now
	ClassForbidden                // the caller or the policy does not allow it
	ClassLimit                    // a limit of size, depth, rate or budget was reached
	ClassUnavailable              // something outside did not answer or failed; trying again may help
	ClassFailed                   // the work itself ended badly: remote refusal, user code, a person's timeout
	ClassUnknown                  // nobody knows who the caller is
)

// The codes. The comment of each group says where they arise.
const (
	// Anywhere.
	Internal     Code = "internal"
	Invalid      Code = "invalid"
	NotFound     Code = "not_found"
	Conflict     Code = "conflict"
	Forbidden    Code = "forbidden"
	Unauthorized Code = "unauthorized"
	TooLarge     Code = "too_large"
	Unsupported  Code = "unsupported"
	Busy         Code = "busy"
	// NotReady: the instance cannot work now, or was told to stop.
	NotReady Code = "not_ready"

	// A node's configuration and data.
	InvalidConfig         Code = "invalid_config"
	InvalidInput          Code = "invalid_input"
	OutputInvalid         Code = "output_invalid"
	UnresolvedPlaceholder Code = "unresolved_placeholder"
	ConversionFailed      Code = "conversion_failed"
	ExpressionError       Code = "expression_error"
	ValidationFailed      Code = "validation_failed"
	ParameterMissing      Code = "parameter_missing"
	LoopLimit             Code = "loop_limit"
	RecursionLimit        Code = "recursion_limit"

	// The world outside.
	CredentialMissing  Code = "credential_missing"
	CredentialInvalid  Code = "credential_invalid"
	RemoteRejected     Code = "remote_rejected"
	RemoteError        Code = "remote_error"
	RateLimited        Code = "rate_limited"
	NetworkError       Code = "network_error"
	Timeout            Code = "timeout"
	SQLError           Code = "sql_error"
	BlockedAddress     Code = "blocked_address"
	ForbiddenPath      Code = "forbidden_path"
	DisabledByOperator Code = "disabled_by_operator"

	// The life of an activation.
	Interrupted     Code = "interrupted"
	Shortage        Code = "resource_shortage" // the machine has run out of something for now
	OutcomeUnknown  Code = "outcome_unknown"
	Canceled        Code = "canceled"
	BudgetExhausted Code = "budget_exhausted"
	Unreadable      Code = "unreadable" // what is recorded of an execution cannot be read

	// Untrusted code, models, tools, people.
	CodeError      Code = "code_error"
	CodeLimit      Code = "code_limit"
	ModelRefused   Code = "model_refused"
	ContextTooLong Code = "context_too_long"
	ToolError      Code = "tool_error"
	DeliveryFailed Code = "delivery_failed"
	NoApprover     Code = "no_approver"
	HILTimeout     Code = "hil_timeout"

	// A quota of the workspace is used up: of executions, until the next day or month, or of bytes, until some are removed.
	QuotaExhausted   Code = "quota_exhausted"
	StorageExhausted Code = "storage_exhausted"

	// A question to people lies on the way, and it cannot be asked there.
	ApprovalRequired Code = "approval_required"

	// A test has come to something with effects, which it may not run.
	NotPinned Code = "not_pinned"
)

// Codes lists every code with its class, in a fixed order.
func Codes() []Code {
	codes := make([]Code, len(table))
	for i, row := range table {
		codes[i] = row.code
	}
	return codes
}

// Class returns the class of a code; an unknown code is ClassInternal.
func (c Code) Class() Class {
	for _, row := range table {
		if row.code == c {
			return row.class
		}
	}
	return ClassInternal
}

// Retryable says whether an error of this code is retryable unless its maker knows better.
func (c Code) Retryable() bool {
	for _, row := range table {
		if row.code == c {
			return row.retryable
		}
	}
	return false
}

// table is read-only. sql_error is not retryable by itself: only a connection lost or a deadlock before commit is.
var table = [...]struct {
	code      Code
	class     Class
	retryable bool
}{
	{Internal, ClassInternal, false},
	{Invalid, ClassInvalid, false},
	{NotFound, ClassNotFound, false},
	{Conflict, ClassConflict, false},
	{Forbidden, ClassForbidden, false},
	{Unauthorized, ClassUnknown, false},
	{TooLarge, ClassLimit, false},
	{Unsupported, ClassInvalid, false},
	{Busy, ClassUnavailable, true},
	{NotReady, ClassUnavailable, true},
	{InvalidConfig, ClassInvalid, false},
	{InvalidInput, ClassInvalid, false},
	{OutputInvalid, ClassFailed, false},
	{UnresolvedPlaceholder, ClassInvalid, false},
	{ConversionFailed, ClassFailed, false},
	{ExpressionError, ClassInvalid, false},
	{ValidationFailed, ClassInvalid, false},
	{ParameterMissing, ClassInvalid, false},
	{LoopLimit, ClassLimit, false},
	{RecursionLimit, ClassLimit, false},
	{CredentialMissing, ClassInvalid, false},
	{CredentialInvalid, ClassForbidden, false},
	{RemoteRejected, ClassFailed, false},
	{RemoteError, ClassUnavailable, true},
	{RateLimited, ClassLimit, true},
	{NetworkError, ClassUnavailable, true},
	{Timeout, ClassUnavailable, true},
	{SQLError, ClassFailed, false},
	{BlockedAddress, ClassForbidden, false},
	{ForbiddenPath, ClassForbidden, false},
	{DisabledByOperator, ClassForbidden, false},
	{Interrupted, ClassFailed, false},
	{Shortage, ClassUnavailable, true},
	{OutcomeUnknown, ClassFailed, false},
	{Canceled, ClassFailed, false},
	{BudgetExhausted, ClassLimit, false},
	{Unreadable, ClassConflict, false},
	{CodeError, ClassFailed, false},
	{CodeLimit, ClassLimit, false},
	{ModelRefused, ClassFailed, false},
	{ContextTooLong, ClassLimit, false},
	{ToolError, ClassFailed, false},
	{DeliveryFailed, ClassUnavailable, false},
	{NoApprover, ClassInvalid, false},
	{HILTimeout, ClassFailed, false},
	{QuotaExhausted, ClassLimit, false},
	{StorageExhausted, ClassLimit, false},
	{ApprovalRequired, ClassConflict, false},
	{NotPinned, ClassInvalid, false},
}
