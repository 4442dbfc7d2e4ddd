package mcp

import (
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// listener is who wants to know of the progress of a call.
type listener struct {
	mu      sync.Mutex
	over    bool
	tell    func(Progress)
	silence time.Duration
	timer   *time.Timer
}

func (l *listener) hear(p Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A timer that has fired is not begun anew: its call has ended.
	if l.over || !l.timer.Stop() {
		return
	}
	l.timer.Reset(l.silence)
	if l.tell != nil {
		l.tell(p)
	}
}

func (l *listener) endListening() {
	l.mu.Lock()
	l.over = true
	l.timer.Stop()
	l.mu.Unlock()
}

func (c *conn) progressed(p *sdk.ProgressNotificationParams) {
	c.mu.Lock()
	c.active = time.Now()
	l := c.listeners[fmt.Sprint(p.ProgressToken)]
	c.mu.Unlock()
	if l != nil {
		l.hear(Progress{Done: p.Progress, Total: p.Total, Message: p.Message})
	}
}
