package llmtest

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"tandem/fault"
	"tandem/llm"
)

// answered lets the service do what a scenario says and holds the completion to it.
func answered(t *testing.T, h Harness, r llm.Request, sc Scenario) (llm.Completion, []llm.Delta) {
	t.Helper()
	s := serve(t, h, tweak{}, say(sc))
	c, told := s.must(r)
	h.checkMessage(t, sc, c.Message)
	if c.Finish != sc.Finish {
		t.Errorf("it finished with %q, want %q", c.Finish, sc.Finish)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("there are warnings %q", c.Warnings)
	}
	s.only()
	return c, told
}

func testText(t *testing.T, h Harness, r llm.Request) {
	sc := text("Hello", ", ", "world", "!\n", " ", "\n\nEnd.  ")
	c, told := answered(t, h, r, sc)
	if c.Model != sc.Model || c.ServiceID != sc.ID {
		t.Errorf("it came from model %q as %q, want %q as %q", c.Model, c.ServiceID, sc.Model, sc.ID)
	}
	if r.Stream {
		if len(told) != len(sc.Deltas) {
			t.Fatalf("the sink was told %d pieces, want the %d that were sent", len(told), len(sc.Deltas))
		}
		for i, d := range told {
			if d != sc.Deltas[i] {
				t.Errorf("piece %d is %+v, want %+v", i, d, sc.Deltas[i])
			}
		}
	}
}

func testUnicode(t *testing.T, h Harness, r llm.Request) {
	answered(t, h, r, text("猫", "と🐈\u200d⬛", "é\u0301", "\u2028\u2029", "<b>&amp;</b>", `"quoted" \ `, "\x00\x1f\t", "data: [DONE]\n\n", "\r\n"))
}

func testEmpty(t *testing.T, h Harness, r llm.Request) {
	sc := text()
	sc.Usage.OutputTokens = 0
	answered(t, h, r, sc)
}

func testToolCalls(t *testing.T, h Harness, r llm.Request) {
	r.Tools = []llm.Tool{{Name: "find"}, {Name: "size"}, {Name: "now"}}
	answered(t, h, r, calling(
		[]string{"find", `{"wh`, `at":"`, `猫\"`, `","n":[1,`, `2]}`},
		[]string{"size", `{"of":"x"}`},
		[]string{"size", `{"of":"y"}`},
	))
}

func testTextAndToolCalls(t *testing.T, h Harness, r llm.Request) {
	r.Tools = []llm.Tool{{Name: "find"}}
	sc := calling([]string{"find", `{"what":`, `"cat"}`})
	sc.Deltas = append([]llm.Delta{{Text: "Let me "}, {Text: "look."}}, sc.Deltas...)
	answered(t, h, r, sc)
}

func testReasoning(t *testing.T, h Harness, r llm.Request) {
	sc := text("It is ", "42.")
	sc.Deltas = append([]llm.Delta{{Reasoning: "Let me "}, {Reasoning: "think. 想"}}, sc.Deltas...)
	answered(t, h, r, sc)
}

func testLength(t *testing.T, h Harness, r llm.Request) {
	sc := text("This goes on and", " on and")
	sc.Finish = llm.FinishLength
	answered(t, h, r, sc)
}

func testRefusal(t *testing.T, h Harness, r llm.Request) {
	for _, deltas := range [][]llm.Delta{nil, {{Text: "Well, "}}} {
		sc := text()
		sc.Deltas, sc.Refused = deltas, true
		s := serve(t, h, tweak{}, say(sc))
		s.fails(r, fault.ModelRefused)
		s.only()
	}
}

func testUsage(t *testing.T, h Harness, r llm.Request) {
	sc := text("a", "b")
	sc.Usage = &llm.Usage{InputTokens: 1234, OutputTokens: 56, CachedTokens: 1000}
	c, _ := answered(t, h, r, sc)
	if c.Usage != *sc.Usage {
		t.Errorf("it used %+v, want %+v", c.Usage, *sc.Usage)
	}
}

func testUsageMissing(t *testing.T, h Harness, r llm.Request) {
	sc := text("one two three four", " five six")
	sc.Usage = nil
	c, _ := answered(t, h, r, sc)
	if want := llm.Estimate(r.Messages, c.Message); c.Usage != want {
		t.Errorf("it used %+v, want the estimate %+v", c.Usage, want)
	}
}

// testMalformedArguments: what a model writes is passed on; the code that calls the tool tells the model what is wrong with it.
func testMalformedArguments(t *testing.T, h Harness, r llm.Request) {
	r.Tools = []llm.Tool{{Name: "find"}}
	answered(t, h, r, calling([]string{"find", `{"what": "ca`, `t", oops`}))
}

// testGarbage: something that is not an answer, such as the login page of a proxy, is never taken for one.
func testGarbage(t *testing.T, h Harness, r llm.Request) {
	for _, body := range []string{"<!doctype html><title>Log in</title>", "", "{}", "data: {\n\n", "null", `data: "text"` + "\n\n", "[]"} {
		s := serve(t, h, tweak{}, func(x *exchange) {
			reply, ok := x.encode(text("x"))
			if !ok {
				return
			}
			x.begin(reply)
			x.send([]byte(body))
		})
		c, _, err := s.complete(t.Context(), r)
		if err == nil {
			t.Errorf("the body %q was taken for the answer %+v", body, c)
			continue
		}
		if code := fault.CodeOf(err); code != fault.RemoteError && code != fault.NetworkError {
			t.Errorf("the body %q makes %v, want remote_error or network_error", body, err)
		}
	}
}

// testManyAtOnce: one provider serves many callers, and no caller gets the answer to another.
func testManyAtOnce(t *testing.T, h Harness, r llm.Request) {
	s := serve(t, h, tweak{}, func(x *exchange) {
		question := x.call.Messages[len(x.call.Messages)-1].Content
		say(text("Re: ", question, "!"))(x)
	})
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			mine := r
			mine.Messages = []llm.Message{{Role: llm.User, Content: fmt.Sprint("question ", i)}}
			told := ""
			c, err := s.provider.Complete(t.Context(), mine, func(d llm.Delta) { told += d.Text })
			want := fmt.Sprintf("Re: question %d!", i)
			if err != nil || c.Message.Content != want || r.Stream && told != want {
				t.Errorf("caller %d got %q (told %q), %v", i, c.Message.Content, told, err)
			}
		})
	}
	group.Wait()
}

// page answers with something that is not of the protocol.
func page(status int, body string) behaviour {
	return func(x *exchange) {
		x.Header().Set("Content-Type", "text/html; charset=utf-8")
		if body == "" {
			x.Header().Del("Content-Type")
		}
		x.begin(Reply{Status: status, Header: http.Header{}})
		x.send([]byte(body))
	}
}
