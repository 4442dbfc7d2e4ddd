package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"

	"tandem/api"
)

// socketReader reads an execution to its end by WebSockets, first by one server. When the connection is lost it dials the other, behind what it has read.
type socketReader struct {
	ended  chan struct{}
	events []api.Event
	// dialed is when it had its first connection, and to is the server of that.
	dialed time.Time
	to     string
	// lost counts the connections that were lost.
	lost int
	err  error
}

// readSocket begins to read an execution.
func (i *installation) readSocket(ctx context.Context, id string, by int) *socketReader {
	s := &socketReader{ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		for after := ""; ; by = 1 - by {
			conn, _, err := websocket.Dial(ctx, "ws://"+i.addresses[servers[by]]+"/api/v1/executions/"+id+"/stream?after="+after,
				&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer a-configured-token"}}, Subprotocols: []string{"tandem"}})
			if err != nil { // it is away, and so may be the other
				select {
				case <-time.After(100 * time.Millisecond):
					continue
				case <-ctx.Done():
					s.err = context.Cause(ctx)
					return
				}
			}
			if s.dialed.IsZero() {
				s.dialed, s.to = time.Now(), servers[by]
			}
			conn.SetReadLimit(1 << 20)
			for err == nil {
				var body []byte
				if _, body, err = conn.Read(ctx); err != nil {
					break
				}
				var e api.Event
				if s.err = json.Unmarshal(body, &e); s.err != nil {
					return
				}
				if e.Seq > 0 && e.EventType != "" { // the first is about the subscription
					s.events = append(s.events, e)
					after = fmt.Sprintf("%d.%d", e.Seq, e.Part)
				}
			}
			_ = conn.CloseNow() // it is lost, or closed by the server
			if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
				return
			}
			s.lost++
		}
	}()
	return s
}

// check fails unless the reader was told what the journal has, nothing left out and nothing twice, and had to move if its server was killed
// while the execution went on.
func (s *socketReader) check(t *testing.T, k killing, ended int64, want []string) {
	t.Helper()
	<-s.ended
	if s.err != nil {
		t.Fatalf("%s killed: a reader by WebSocket: %v", k.victim, s.err)
	}
	if got := inShort(s.events); !slices.Equal(got, want) {
		t.Errorf("%s killed: a reader by WebSocket was told %v, and the journal has %v", k.victim, got, want)
	}
	if s.to == k.victim && s.dialed.Before(k.began) && ended > k.done.UnixMilli() && s.lost == 0 {
		t.Errorf("%s killed: a reader by WebSocket that was at it has lost no connection", k.victim)
	}
}

// killing is when a process was killed: it lived when that began, and was dead when it was done.
type killing struct {
	victim      string
	began, done time.Time
}
