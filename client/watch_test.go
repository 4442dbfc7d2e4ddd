package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/client"
	"tandem/fault"
)

// tripper answers requests without a network.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func over(t *testing.T, f tripper) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: "http://tandem.test", HTTP: &http.Client{Transport: f}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answer(status int, kind string, body io.Reader) *http.Response {
	closer, ok := body.(io.ReadCloser)
	if !ok {
		closer = io.NopCloser(body)
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {kind}}, Body: closer,
		ProtoMajor: 1, ProtoMinor: 1,
	}
}

const stream = "text/event-stream; charset=utf-8"

// recorded is a stream: what it tells, and the bytes of what follows a position.
type recorded struct {
	ids   []string
	texts []string
}

func history() recorded {
	r := recorded{}
	add := func(id, event, data string) {
		r.ids = append(r.ids, id)
		text := "event: " + event + "\ndata: " + data + "\n\n"
		if id != "" {
			text = "id: " + id + "\n" + text
		}
		r.texts = append(r.texts, text)
	}
	add("1.1", "execution_started", `{"event_type":"execution_started","seq":1,"part":1,"data":{}}`)
	add("1.2", "node_started", `{"event_type":"node_started","seq":1,"part":2,"data":{"node_id":"名前"}}`)
	add("2.1", "node_completed", "{\"event_type\":\"node_completed\",\ndata: \"seq\":2,\"part\":1,\"data\":{}}")
	add("10.1", "node_failed", `{"event_type":"node_failed","seq":10,"part":1,"data":{}}`)
	add("10.2", "execution_failed", `{"event_type":"execution_failed","seq":10,"part":2,"data":{}}`)
	return r
}

// after is the stream after a position.
func (r recorded) after(position string) string {
	i := slices.Index(r.ids, position) + 1
	return "retry: 20\n: welcome\n\n" + strings.Join(r.texts[i:], ": still here\n\n")
}

// A stream that breaks at any byte goes on where it was: every frame once, in order, whatever ends its lines.
func TestWatch_BreaksAtEveryByte(t *testing.T) {
	t.Parallel()
	h := history()
	for name, end := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := len(strings.ReplaceAll(h.after(""), "\n", end))
			for cut := range whole {
				synctest.Test(t, func(t *testing.T) {
					connections := 0
					c := over(t, func(r *http.Request) (*http.Response, error) {
						connections++
						body := strings.ReplaceAll(h.after(r.Header.Get("Last-Event-ID")), "\n", end)
						if connections == 1 {
							torn := io.MultiReader(strings.NewReader(body[:cut]), iotest.ErrReader(io.ErrUnexpectedEOF))
							return answer(200, stream, iotest.OneByteReader(torn)), nil
						}
						return answer(200, stream, strings.NewReader(body)), nil
					})
					var got []string
					err := c.Watch(t.Context(), "e", "", "", func(e api.Event) error {
						got = append(got, fmt.Sprintf("%d.%d", e.Seq, e.Part))
						return nil
					})
					if diff := cmp.Diff(h.ids, got); err != nil || diff != "" {
						t.Fatalf("cut at %d: %v (-want +got):\n%s", cut, err, diff)
					}
				})
			}
		})
	}
}

// A server that repeats what it has sent shows nothing twice; frames without a position are handed on as they come.
func TestWatch_ShowsNothingTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := history()
		delta := "event: node_output_update\ndata: {\"event_type\":\"node_output_update\",\"data\":{}}\n\n"
		connections := 0
		c := over(t, func(*http.Request) (*http.Response, error) {
			connections++
			if connections == 1 {
				return answer(200, stream, io.MultiReader(strings.NewReader("\ufeff"+strings.Join(h.texts[:3], "")+delta), iotest.ErrReader(errors.New("reset")))), nil
			}
			return answer(200, stream, strings.NewReader(delta+strings.Join(h.texts, ""))), nil
		})
		var got []string
		err := c.Watch(t.Context(), "e", "1.1", client.VocabularyExecution, func(e api.Event) error {
			got = append(got, fmt.Sprintf("%d.%d", e.Seq, e.Part))
			return nil
		})
		if diff := cmp.Diff([]string{"1.2", "2.1", "0.0", "0.0", "10.1", "10.2"}, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// A stream that ends in good order before the execution does is opened again; so is one of which nothing comes.
func TestWatch_ComesBack(t *testing.T) {
	t.Parallel()
	h := history()
	for _, c := range []struct {
		name  string
		first func() (*http.Response, error)
	}{
		{"AfterShutdown", func() (*http.Response, error) { return answer(200, stream, strings.NewReader(h.texts[0])), nil }},
		{"AfterRefusal", func() (*http.Response, error) {
			return answer(503, "application/problem+json", strings.NewReader(`{"code":"network_error","detail":"not ready","status":503}`)), nil
		}},
		{"AfterNobodyAnswered", func() (*http.Response, error) { return nil, errors.New("connection refused") }},
		{"AfterSilence", func() (*http.Response, error) {
			quiet, _ := io.Pipe()
			return answer(200, stream, quiet), nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				connections := 0
				cl := over(t, func(r *http.Request) (*http.Response, error) {
					if connections++; connections == 1 {
						response, err := c.first()
						if response != nil {
							// As a transport does: the end of the request ends the body.
							body := response.Body
							context.AfterFunc(r.Context(), func() { body.Close() })
						}
						return response, err
					}
					return answer(200, stream, strings.NewReader(h.after(r.Header.Get("Last-Event-ID")))), nil
				})
				seen := 0
				err := cl.Watch(t.Context(), "e", "", "flow", func(api.Event) error { seen++; return nil })
				if err != nil || seen != len(h.ids) || connections != 2 {
					t.Errorf("%v: %d frames over %d connections", err, seen, connections)
				}
			})
		})
	}
}

// Who begins behind the end of a finished execution sees nothing, and an end.
func TestWatch_BehindTheEnd(t *testing.T) {
	t.Parallel()
	c := over(t, func(r *http.Request) (*http.Response, error) {
		if got := r.Header.Get("Last-Event-ID"); got != "10" {
			t.Errorf("asked after %q", got)
		}
		return answer(204, "", http.NoBody), nil
	})
	if err := c.Watch(t.Context(), "e", "10", "", func(e api.Event) error { return fmt.Errorf("saw %+v", e) }); err != nil {
		t.Error(err)
	}
}

// A stream whose last frame did not end the execution is not over, also when an earlier one did: somebody let it go on.
func TestWatch_FollowsARevival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := history()
		revived := "id: 11.1\ndata: {\"event_type\":\"execution_resumed\"}\n\n"
		end := "id: 12.1\ndata: {\"event_type\":\"execution_completed\"}\n\n"
		connections := 0
		c := over(t, func(r *http.Request) (*http.Response, error) {
			if connections++; connections == 1 {
				return answer(200, stream, strings.NewReader(h.after("")+revived)), nil
			}
			if got := r.Header.Get("Last-Event-ID"); got != "11.1" {
				t.Errorf("asked after %q", got)
			}
			return answer(200, stream, strings.NewReader(end)), nil
		})
		seen := 0
		if err := c.Watch(t.Context(), "e", "", "", func(api.Event) error { seen++; return nil }); err != nil || seen != len(h.ids)+2 {
			t.Errorf("%v after %d frames", err, seen)
		}
	})
}

func TestWatch_Ends(t *testing.T) {
	t.Parallel()
	refused := func(status int, body string) tripper {
		return func(*http.Request) (*http.Response, error) {
			return answer(status, "application/problem+json", strings.NewReader(body)), nil
		}
	}
	for _, c := range []struct {
		name   string
		trip   tripper
		after  string
		want   fault.Code
		within time.Duration
	}{
		{"NotFound", refused(404, `{"code":"not_found","detail":"no such execution","status":404}`), "", fault.NotFound, time.Second},
		{"BadPosition", refused(500, ""), "17.x", fault.Invalid, time.Second},
		{"NoServer", func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }, "", fault.NetworkError, 2 * time.Minute},
		{"AlwaysNotReady", refused(503, ""), "", fault.RemoteError, 2 * time.Minute},
		{"NoTandem", func(*http.Request) (*http.Response, error) {
			return answer(200, "text/html", strings.NewReader("hello")), nil
		}, "", fault.RemoteError, time.Second},
		{"Gibberish", func(*http.Request) (*http.Response, error) {
			return answer(200, stream, strings.NewReader("id: 1.1\ndata: {]\n\n")), nil
		}, "", fault.RemoteError, time.Second},
		{"TooLarge", func(*http.Request) (*http.Response, error) {
			return answer(200, stream, io.MultiReader(strings.NewReader("data: "), endless{})), nil
		}, "", fault.TooLarge, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				err := over(t, c.trip).Watch(t.Context(), "e", c.after, "", func(api.Event) error { return nil })
				if fault.CodeOf(err) != c.want {
					t.Errorf("error %v, want code %q", err, c.want)
				}
				if took := time.Since(begun); took > c.within {
					t.Errorf("gave up after %v, want %v at most", took, c.within)
				}
			})
		})
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte("x"), len(b))), nil }

func TestWatch_EndsWithItsCaller(t *testing.T) {
	t.Parallel()
	h := history()
	enough := errors.New("enough")
	c := over(t, func(*http.Request) (*http.Response, error) {
		return answer(200, stream, strings.NewReader(h.after(""))), nil
	})
	seen := 0
	err := c.Watch(t.Context(), "e", "", "", func(api.Event) error {
		if seen++; seen == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || err != enough || seen != 2 {
		t.Errorf("error %v after %d frames", err, seen)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	err = c.Watch(ctx, "e", "", "", func(api.Event) error { cancel(enough); return nil })
	if !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
}

// The same over a real connection, which the server cuts in the middle of a character.
func TestWatch_RealConnection(t *testing.T) {
	t.Parallel()
	h := history()
	var connections atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", stream)
		body := h.after(r.Header.Get("Last-Event-ID"))
		if connections.Add(1) > 1 {
			fmt.Fprint(w, body)
			return
		}
		fmt.Fprint(w, body[:strings.Index(body, "名")+1])
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	c, err := client.New(client.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = c.Watch(t.Context(), "e", "", "", func(e api.Event) error {
		got = append(got, fmt.Sprintf("%d.%d", e.Seq, e.Part))
		return nil
	})
	if diff := cmp.Diff(h.ids, got); err != nil || diff != "" || connections.Load() != 2 {
		t.Errorf("%v over %d connections (-want +got):\n%s", err, connections.Load(), diff)
	}
}
