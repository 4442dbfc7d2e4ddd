package llmtest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"tandem/fault"
	"tandem/llm"
)

// testAsItArrives: a piece is handed over before the next one exists.
func testAsItArrives(t *testing.T, h Harness) {
	sc := text("first", " second", " third")
	heard := make(chan struct{}, len(sc.Deltas))
	s := serve(t, h, tweak{}, func(x *exchange) {
		reply, ok := x.encode(sc)
		if !ok {
			return
		}
		x.begin(reply)
		// Some frames say nothing (a role, a start), so it is the text that is waited for.
		words := [][]byte{[]byte("first"), []byte(" second"), []byte(" third")}
		for _, f := range reply.Frames {
			x.send(f)
			if len(words) > 0 && bytes.Contains(f, words[0]) {
				words = words[1:]
				select {
				case <-heard:
				case <-x.request.Context().Done():
					return
				}
			}
		}
		x.send(reply.End...)
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := s.provider.Complete(ctx, h.plain(true), func(llm.Delta) { heard <- struct{}{} })
	if err != nil {
		t.Fatalf("the pieces were not told as they came: %v", err)
	}
	h.checkMessage(t, sc, c.Message)
}

func testManyDeltas(t *testing.T, h Harness) {
	sc := text(numbered(10_000)...)
	s := serve(t, h, tweak{}, inOneGo(sc))
	c, told := s.must(h.plain(true))
	h.checkMessage(t, sc, c.Message)
	if len(told) != len(sc.Deltas) {
		t.Fatalf("the sink was told %d pieces of %d", len(told), len(sc.Deltas))
	}
	for i, d := range told {
		if d.Text != sc.Deltas[i].Text {
			t.Fatalf("piece %d is %q, want %q", i, d.Text, sc.Deltas[i].Text)
		}
	}
}

func numbered(n int) []string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprint(" ", i)
	}
	return parts
}

// inOneGo answers with a scenario without flushing each frame. It encodes it for the first call and keeps the bytes.
func inOneGo(sc Scenario) behaviour {
	var once sync.Once
	var kept Reply
	var ok bool
	return func(x *exchange) {
		once.Do(func() {
			if kept, ok = x.encode(sc); ok {
				kept.Frames = [][]byte{append(bytes.Join(kept.Frames, nil), bytes.Join(kept.End, nil)...)}
			}
		})
		if ok {
			x.begin(kept)
			x.send(kept.Frames...)
		}
	}
}

// awkward is an answer with runes of all lengths and calls in pieces.
func awkward() Scenario {
	sc := calling([]string{"find", `{"what":"`, `猫🐈`, `é"}`}, []string{"size", `{}`})
	sc.Deltas = append([]llm.Delta{{Text: "猫🐈é"}, {Text: "x"}, {Text: "\r\n\n"}, {Text: "👩‍🚀 ok"}}, sc.Deltas...)
	return sc
}

// testAwkwardPieces reads the stream a few bytes at a time: reads end within runes, within line ends, within everything.
func testAwkwardPieces(t *testing.T, h Harness) {
	for _, size := range []int{1, 2, 3, 5, 7, 64} {
		t.Run(fmt.Sprint("By", size), func(t *testing.T) {
			t.Parallel()
			answeredBy(t, h, size, inOneGo(awkward()))
		})
	}
}

// answeredBy asks with tools and holds the completion to awkward.
func answeredBy(t *testing.T, h Harness, pieceSize int, behave behaviour) {
	t.Helper()
	r := h.plain(true)
	r.Tools = []llm.Tool{{Name: "find"}, {Name: "size"}}
	s := serve(t, h, tweak{pieceSize: pieceSize}, behave)
	c, _ := s.must(r)
	h.checkMessage(t, awkward(), c.Message)
	if c.Finish != llm.FinishToolCalls {
		t.Errorf("it finished with %q", c.Finish)
	}
}

// altered answers with awkward after its frames were changed.
func altered(change func(frame []byte) []byte) behaviour {
	return func(x *exchange) {
		if reply, ok := x.encode(awkward()); ok {
			x.begin(reply)
			for _, f := range append(reply.Frames, reply.End...) {
				x.send(change(f))
			}
		}
	}
}

func testLineEnds(t *testing.T, h Harness) {
	for _, size := range []int{0, 1, 2, 3} {
		t.Run(fmt.Sprint("By", size), func(t *testing.T) {
			t.Parallel()
			answeredBy(t, h, size, altered(func(f []byte) []byte { return bytes.ReplaceAll(f, []byte("\n"), []byte("\r\n")) }))
		})
	}
}

func testKeepAlive(t *testing.T, h Harness) {
	for name, comment := range map[string]string{"Comment": ": keep-alive\n\n", "Bare": ":\n\n",
		"Tight": ": processing\n", "BlankLines": "\n\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answeredBy(t, h, 0, altered(func(f []byte) []byte { return append([]byte(comment), f...) }))
		})
	}
}

// testSlowFirstToken: comments while a model thinks are not an answer, and no reason to give up.
func testSlowFirstToken(t *testing.T, h Harness) {
	thought := make(chan struct{})
	sc := text("at last")
	s := serve(t, h, tweak{}, func(x *exchange) {
		reply, ok := x.encode(sc)
		if !ok {
			return
		}
		x.begin(reply)
		if !h.lacks(KeepAlive) {
			x.send([]byte(strings.Repeat(": thinking\n\n", 50)))
		}
		close(thought)
		x.send(reply.Frames...)
		x.send(reply.End...)
	})
	c, _ := s.must(h.plain(true))
	<-thought
	h.checkMessage(t, sc, c.Message)
}

// testCut: a stream that ends without its sign of completeness is never taken for an answer.
func testCut(t *testing.T, h Harness) {
	half := func(b []byte) []byte { return b[:len(b)/2] }
	for name, cut := range map[string]func(x *exchange, reply Reply){
		"Empty":      func(*exchange, Reply) {},
		"EmptyAbort": func(x *exchange, _ Reply) { x.abort() },
		"First":      func(x *exchange, reply Reply) { x.send(reply.Frames[0]) },
		"FirstAbort": func(x *exchange, reply Reply) { x.send(reply.Frames[0]); x.abort() },
		"BeforeEnd":  func(x *exchange, reply Reply) { x.send(reply.Frames...) },
		"BeforeEndAbort": func(x *exchange, reply Reply) {
			x.send(reply.Frames...)
			x.abort()
		},
		"WithinFrame": func(x *exchange, reply Reply) {
			x.send(reply.Frames[0], half(reply.Frames[1]))
		},
		"WithinFrameAbort": func(x *exchange, reply Reply) {
			x.send(reply.Frames[0], half(reply.Frames[1]))
			x.abort()
		},
		"WithinEnd": func(x *exchange, reply Reply) {
			x.send(reply.Frames...)
			x.send(half(reply.End[0]))
		},
		"WithinEndAbort": func(x *exchange, reply Reply) {
			x.send(reply.Frames...)
			x.send(half(reply.End[0]))
			x.abort()
		},
	} {
		for what, sc := range map[string]Scenario{"Text": text("some", " text", " that ends"), "ToolCalls": calling([]string{"find", `{"a":`, `1}`}, []string{"size", `{}`})} {
			t.Run(name+what, func(t *testing.T) {
				t.Parallel()
				s := serve(t, h, tweak{}, func(x *exchange) {
					if reply, ok := x.encode(sc); ok {
						x.begin(reply)
						cut(x, reply)
					}
				})
				r := h.plain(true)
				r.Tools = []llm.Tool{{Name: "find"}, {Name: "size"}}
				s.fails(r, fault.NetworkError)
				s.only()
			})
		}
	}
}

// testErrorInside: a service that fails after it has begun says so inside the stream.
func testErrorInside(t *testing.T, h Harness) {
	sc := text("some", " text")
	sc.Fail, sc.Message = fault.RemoteError, "the engine has stopped, "+secret
	s := serve(t, h, tweak{}, say(sc))
	s.fails(h.plain(true), fault.RemoteError)
	s.only()
}
