package llm

import "time"

// Unavailable is an error of a service that said when it may be asked again.
type Unavailable struct {
	Err error
	// RetryAfter is how long to wait; it wins over any backoff.
	RetryAfter time.Duration
}

// Error returns what the error says.
func (u *Unavailable) Error() string { return u.Err.Error() }

// Unwrap returns the error.
func (u *Unavailable) Unwrap() error { return u.Err }
