package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"tandem/api"
	"tandem/client"
	"tandem/fault"
)

// peopleClient is a client of a server that does what a function does.
func peopleClient(t *testing.T, serve http.HandlerFunc) *client.Client {
	t.Helper()
	web := httptest.NewServer(serve)
	t.Cleanup(web.Close)
	c, err := client.New(client.Options{URL: web.URL, Token: "tdm_x"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestInteractions_Requests(t *testing.T) {
	t.Parallel()
	var got string
	c := peopleClient(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if r.Method == http.MethodPost && r.ContentLength > 0 {
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
		}
		got = fmt.Sprint(r.Method, " ", r.URL.EscapedPath(), "?", r.URL.RawQuery, " ", body)
		fmt.Fprint(w, `{"id":"i","url":"u","interactions":[],"pauses":[]}`)
	})
	ctx := t.Context()
	for want, call := range map[string]func() error{
		"GET /api/v1/interactions?execution_id=e&family=true&mine=true&page=2&purpose=budget&status=pending%2Ctimeout map[]": func() error {
			_, err := c.Interactions(ctx, client.InteractionQuery{Mine: true, Statuses: []string{"pending", "timeout"}, ExecutionID: "e", Family: true, Purpose: "budget", Page: 2})
			return err
		},
		"GET /api/v1/interactions/a%2Fb? map[]": func() error { _, err := c.Interaction(ctx, "a/b"); return err },
		"POST /api/v1/interactions/i/respond? map[arguments_hash:h response_data:map[action:approve]]": func() error {
			_, err := c.Respond(ctx, "i", api.RespondRequest{ResponseData: json.RawMessage(`{"action":"approve"}`), ArgumentsHash: "h"})
			return err
		},
		"POST /api/v1/interactions/i/delegate? map[note:n to:ann]": func() error {
			_, err := c.Delegate(ctx, "i", api.DelegateRequest{To: "ann", Note: "n"})
			return err
		},
		"POST /api/v1/interactions/i/override? map[reason:r response_data:map[action:approve]]": func() error {
			_, err := c.Override(ctx, "i", api.OverrideRequest{ResponseData: json.RawMessage(`{"action":"approve"}`), Reason: "r"})
			return err
		},
		"POST /api/v1/interactions/i/cancel? map[reason:r]":  func() error { _, err := c.CancelInteraction(ctx, "i", "r"); return err },
		"POST /api/v1/interactions/i/remind? map[]":          func() error { _, err := c.Remind(ctx, "i"); return err },
		"POST /api/v1/interactions/i/link? map[recipient:x]": func() error { _, err := c.Link(ctx, "i", "x"); return err },
		"POST /api/v1/interactions/i/responses/r/overrule? map[reason:no]": func() error {
			_, err := c.Overrule(ctx, "i", "r", api.OverruleRequest{Reason: "no"})
			return err
		},
		"GET /api/v1/executions/e/pauses? map[]": func() error { _, err := c.Pauses(ctx, "e"); return err },
	} {
		if err := call(); err != nil || got != want {
			t.Errorf("sent %s, want %s; %v", got, want, err)
		}
	}
}

// A connection that breaks is made again, and begins with everything.
func TestWatchInbox(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	c := peopleClient(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		n := connections.Add(1)
		fmt.Fprintf(w, "retry: 2000\n\nevent: snapshot\ndata: {\"interactions\":[{\"id\":\"s%d\"}],\"total_count\":1}\n\n: alive\n\n", n)
		fmt.Fprintf(w, "event: interaction\ndata: {\"interaction\":{\"id\":\"e%d\"},\"may_respond\":true}\n\n", n)
	})
	enough := errors.New("enough")
	var seen []string
	err := c.WatchInbox(t.Context(), func(f client.InboxFrame) error {
		if f.Snapshot != nil {
			seen = append(seen, f.Snapshot.Interactions[0].ID)
		} else if f.Event.MayRespond {
			seen = append(seen, f.Event.Interaction.ID)
		}
		if len(seen) == 4 {
			return enough
		}
		return nil
	})
	if got := strings.Join(seen, " "); !errors.Is(err, enough) || got != "s1 e1 s2 e2" {
		t.Errorf("saw %s, %v", got, err)
	}
}

func TestWatchInbox_Ends(t *testing.T) {
	t.Parallel()
	refused := peopleClient(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"title":"Unauthorized","status":401,"detail":"who?","code":"unauthorized"}`)
	})
	each := func(client.InboxFrame) error { return nil }
	if err := refused.WatchInbox(t.Context(), each); fault.CodeOf(err) != fault.Unauthorized {
		t.Errorf("refused: %v", err)
	}
	strange := peopleClient(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "event: news\ndata: {}\n\n") })
	if err := strange.WatchInbox(t.Context(), each); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("a frame that nobody knows: %v", err)
	}
	open := peopleClient(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "event: snapshot\ndata: {\"interactions\":[],\"total_count\":0}\n\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	if err := open.WatchInbox(ctx, func(client.InboxFrame) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller has left: %v", err)
	}
}
