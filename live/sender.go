package live

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tandem/store"
)

const (
	// sendTimeout is how long a message may take to be sent.
	sendTimeout = 10 * time.Second
	// logEvery is how often it is logged at most that messages were not sent.
	logEvery = time.Minute
)

// sender sends messages.
type sender struct {
	store.Wire
	log *slog.Logger

	mu sync.Mutex
	// next is when it may be logged again that messages were not sent, and failed how many it was not said of.
	next   time.Time
	failed int
}

// send sends a message, and says whether it was sent. One that is lost is made up for by the next renewal, or by a row.
func (s *sender) send(ctx context.Context, channel string, message any) bool {
	body, err := encode(message)
	if err == nil {
		sending, cancel := context.WithTimeout(ctx, sendTimeout)
		err = s.Send(sending, channel, body)
		cancel()
	}
	if err != nil && ctx.Err() == nil {
		s.warn(err)
	}
	return err == nil
}

func (s *sender) warn(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed++
	if now := time.Now(); !now.Before(s.next) {
		s.log.Warn("readers at other servers were not told", "messages", s.failed, "error", err)
		s.next, s.failed = now.Add(logEvery), 0
	}
}
