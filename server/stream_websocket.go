package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/story"
)

// webSocketProtocol is the protocol that a WebSocket is asked for in the handshake.
const webSocketProtocol = "tandem"

// webSocketReadLimit is how long a message from a reader may be. Readers need not send anything.
const webSocketReadLimit = 4 << 10

func webSocketOperation() huma.Operation {
	return huma.Operation{
		Method: http.MethodGet, Path: "/executions/{id}/stream", OperationID: "stream-execution", Summary: "Follow an execution by WebSocket", Tags: []string{"executions"},
		Description: followDescription + " Here the end is a close with status 1000; 1001 means that the server is stopping and the reader may connect again.\n\n" +
			"The first message is a SubscriptionResponse: subscription_id, execution_id, status (subscribed, or finished when the execution has ended) and seq, the row after which the stream begins. Every other message is an Event, the same as the data of a server-sent event. Messages from the reader are not looked at.\n\n" +
			"A browser cannot send the Authorization header with a WebSocket. It offers the token as a protocol instead: new WebSocket(url, [\"tandem\", \"bearer.\" + token]). Pages of other sites are refused.",
		Parameters: followParameters(),
		Responses: map[string]*huma.Response{
			"101": {Description: "The connection is a WebSocket from now on."},
		},
	}
}

// serveWebSocket answers with a WebSocket.
func (s *Server) serveWebSocket(w http.ResponseWriter, r *http.Request, p identity.Principal) error {
	words, from, err := following(r)
	if err != nil {
		return err
	}
	if !route.Upgrades(r) {
		return fault.New(fault.Unsupported, "this address speaks WebSocket; for an HTTP answer use .../events")
	}
	// The request's own context does not end with the connection once that has been taken over.
	ctx, done, err := s.open.addStream(context.WithoutCancel(r.Context()))
	if err != nil {
		return err
	}
	defer done()
	reader, err := s.stories.Follow(ctx, s.open.ctx, p, r.PathValue("id"), words, from)
	if err != nil {
		return err
	}
	defer reader.Close()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{webSocketProtocol}})
	if err != nil {
		s.Log.DebugContext(ctx, "a handshake was refused", "error", err)
		return nil // it has been answered
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	gone := listen(conn, leave)
	defer func() {
		if err := conn.CloseNow(); err != nil && !errors.Is(err, context.Canceled) {
			s.Log.DebugContext(ctx, "close a stream", "error", err)
		}
		<-gone
	}()
	s.sendMessages(ctx, reader, conn)
	return nil
}

// listen reads what the reader sends, to answer pings and to see the end. Other messages are ignored.
func listen(conn *websocket.Conn, leave func()) (gone <-chan struct{}) {
	conn.SetReadLimit(webSocketReadLimit)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer leave()
		for {
			if _, _, err := conn.Read(context.Background()); err != nil {
				return
			}
		}
	}()
	return ended
}

// sendMessages sends frames until the execution ends, the reader leaves or the server stops.
func (s *Server) sendMessages(ctx context.Context, reader *story.Reader, conn *websocket.Conn) {
	row, ended := reader.Place()
	hello := api.Subscription{SubscriptionID: strings.ToLower(rand.Text()), ExecutionID: reader.Execution(), Status: "subscribed", Seq: row}
	if ended {
		hello.Status, hello.Message = "finished", "the execution has ended; what is recorded follows"
	}
	body, err := json.Marshal(hello)
	if err != nil {
		s.Log.ErrorContext(ctx, "a subscription cannot be told", "error", err)
		return
	}
	alive := time.NewTicker(streamKeepAlive)
	defer alive.Stop()
	frames := []story.Frame{{Body: body}}
	for {
		for i := range frames {
			if err := s.writeMessage(ctx, conn, frames[i].Body); err != nil {
				return // it has gone, or is too slow
			}
		}
		frames, err = reader.Next(ctx, alive.C)
		switch {
		case errors.Is(err, story.ErrFinished):
			s.bid(ctx, conn, websocket.StatusNormalClosure, "the execution has ended")
			return
		case s.open.ctx.Err() != nil, errors.Is(err, store.ErrBroken): // nothing more is read here; another server goes on
			s.bid(ctx, conn, websocket.StatusGoingAway, "the server is stopping")
			return
		case ctx.Err() != nil:
			return
		case err != nil:
			s.Log.WarnContext(ctx, "a stream broke off", "execution", reader.Execution(), "error", err)
			s.bid(ctx, conn, websocket.StatusInternalError, "the stream broke off; connect again")
			return
		case len(frames) == 0:
			if err := s.ping(ctx, conn); err != nil {
				return
			}
		}
	}
}

// bid closes a connection with a reason.
func (s *Server) bid(ctx context.Context, conn *websocket.Conn, status websocket.StatusCode, reason string) {
	if err := conn.Close(status, reason); err != nil {
		s.Log.DebugContext(ctx, "a reader did not take its leave", "error", err)
	}
}

// writeMessage sends one message. It gives up a reader that does not take it within a limit.
func (s *Server) writeMessage(ctx context.Context, conn *websocket.Conn, body []byte) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.open.patience)
	defer stop()
	return conn.Write(ctx, websocket.MessageText, body)
}

func (s *Server) ping(ctx context.Context, conn *websocket.Conn) error {
	ctx, stop := context.WithTimeout(ctx, s.open.patience)
	defer stop()
	return conn.Ping(ctx)
}
