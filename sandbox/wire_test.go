package sandbox

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tandem/fault"
)

// framed is a reply as a child sends it.
func framed(tb testing.TB, r *reply) []byte {
	tb.Helper()
	var out bytes.Buffer
	if err := writeFrame(&out, r.append(frame(nil))); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func wellBehaved() *reply {
	return &reply{kind: replyValue, value: []byte(`{"a":[1,"é"]}`), stdout: []byte("out"), stderr: []byte("err"), line: 3, duration: time.Millisecond}
}

// hear reads what a child says, as the parent does, and holds that it is a value or an error, and bounded.
func hear(t *testing.T, sent []byte) (Result, error) {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(sent))
	b, err := readFrame(in)
	if err != nil {
		return Result{}, err
	}
	if len(b) > len(sent) || len(b) > maxFrame {
		t.Fatalf("a frame of %d bytes was made of %d", len(b), len(sent))
	}
	r, err := parseReply(b)
	if err != nil {
		return Result{}, err
	}
	c := &Call{Tenant: "t", Language: Python, Source: "x"}
	q, invalid := c.request()
	if invalid != nil {
		t.Fatal(invalid)
	}
	result, err := r.result(c, q)
	texts := []string{result.Stdout, result.Stderr}
	if err == nil {
		if !json.Valid(result.Value) || !utf8.Valid(result.Value) || len(result.Value) > q.outputLimit {
			t.Fatalf("the value %.100q was taken", result.Value)
		}
	} else {
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code == "" || result.Value != nil {
			t.Fatalf("the error is %v, with the value %.100q", err, result.Value)
		}
		texts = append(texts, f.Message)
		for _, fact := range f.Details {
			if text, ok := fact.(string); ok {
				texts = append(texts, text)
			}
		}
	}
	for _, text := range texts {
		if !utf8.ValidString(text) || len(text) > 8*maxSaid {
			t.Fatalf("%d bytes of text were taken: %.100q", len(text), text)
		}
	}
	if result.Duration < 0 {
		t.Fatalf("it took %s", result.Duration)
	}
	return result, err
}

func TestReply_Hostile(t *testing.T) {
	t.Parallel()
	whole := framed(t, wellBehaved())
	if result, err := hear(t, whole); err != nil || string(result.Value) != `{"a":[1,"é"]}` || result.Stdout != "out" {
		t.Fatalf("%+v, %v", result, err)
	}
	for n := range whole {
		if _, err := hear(t, whole[:n]); err == nil {
			t.Errorf("%d of %d bytes are an answer", n, len(whole))
		}
	}
	with := func(change func(*reply)) []byte {
		r := wellBehaved()
		change(r)
		return framed(t, r)
	}
	longer := append(bytes.Clone(whole), "more"...)
	binary.LittleEndian.PutUint32(longer, uint32(len(longer)-4))
	inner := bytes.Clone(whole)
	binary.LittleEndian.PutUint32(inner[5:], math.MaxUint32)
	for name, sent := range map[string][]byte{
		"Nothing":      {},
		"NoFields":     {0, 0, 0, 0},
		"TooLarge":     {0xff, 0xff, 0xff, 0xff, 'V'},
		"JustTooLarge": binary.LittleEndian.AppendUint32(nil, maxFrame+1),
		"Announced":    binary.LittleEndian.AppendUint32(nil, maxFrame),
		"FieldTooLong": inner,
		"MoreInFrame":  longer,
		"UnknownKind":  with(func(r *reply) { r.kind = 0xee }),
		"NoJSON":       with(func(r *reply) { r.value = []byte(`{"a":`) }),
		"TwoValues":    with(func(r *reply) { r.value = []byte(`1 2`) }),
		"NotUTF8":      with(func(r *reply) { r.value = []byte("\"\xff\xfe\"") }),
		"Deep":         with(func(r *reply) { r.value = []byte(strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20)) }),
		"LargeValue":   with(func(r *reply) { r.value = []byte(`"` + strings.Repeat("x", DefaultOutputLimit) + `"`) }),
		"NoLimitNamed": with(func(r *reply) { r.kind, r.limit = replyLimit, "moon" }),
	} {
		if _, err := hear(t, sent); err == nil {
			t.Errorf("%s is an answer", name)
		}
	}
	flood := strings.Repeat("\xff\x00é", 1<<20)
	for name, sent := range map[string][]byte{
		"Streams":  with(func(r *reply) { r.stdout, r.stderr = []byte(flood), []byte(flood) }),
		"Texts":    with(func(r *reply) { r.kind, r.message, r.errorType, r.traceback = replyError, flood, flood, flood }),
		"Invalid":  with(func(r *reply) { r.kind, r.message = replyInvalid, flood }),
		"Negative": with(func(r *reply) { r.duration, r.line = math.MinInt64, math.MinInt }),
	} {
		result, err := hear(t, sent)
		if (err == nil) != (name == "Streams" || name == "Negative") {
			t.Errorf("%s: %v, %v", name, result.Value, err)
		}
	}
}

// asked remembers the largest piece that was asked for at once, and has nothing.
type asked struct{ most int }

func (a *asked) Read(p []byte) (int, error) {
	a.most = max(a.most, len(p))
	return 0, io.EOF
}

// A sender that announces a large frame and sends none of it gets no memory for it.
func TestReadFrame_Announced(t *testing.T) {
	t.Parallel()
	a := &asked{}
	if _, err := readFrame(bufio.NewReader(io.MultiReader(bytes.NewReader(binary.LittleEndian.AppendUint32(nil, maxFrame)), a))); !errors.Is(err, errFrame) {
		t.Fatal(err)
	}
	if a.most > 2*frameStep {
		t.Errorf("%d bytes were made room for", a.most)
	}
	large := wellBehaved()
	large.value = []byte(`"` + strings.Repeat("x", 5<<20) + `"`)
	b, err := readFrame(bufio.NewReader(bytes.NewReader(framed(t, large))))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := parseReply(b); err != nil || !bytes.Equal(r.value, large.value) {
		t.Errorf("a large frame did not arrive: %v", err)
	}
}

// A child that answers before it was asked, or twice, is given up: its words could be taken for the answer to another call.
func TestExchange_Flood(t *testing.T) {
	t.Parallel()
	requests, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer requests.Close()
	defer in.Close()
	one := framed(t, wellBehaved())
	for times, good := range map[int]bool{1: true, 2: false, 1000: false} {
		c := &child{in: in, out: bufio.NewReaderSize(bytes.NewReader(bytes.Repeat(one, times)), 64<<10), gone: make(chan struct{})}
		r, err := c.exchange(t.Context(), &request{source: []byte("x")}, time.Minute, nil)
		if (err == nil) != good || good && r.kind != replyValue {
			t.Errorf("%d answers to one call: %v", times, err)
		}
	}
}

// What a child says that code prints is bounded as well, and nothing of it is not worth a word.
func TestExchange_Printed(t *testing.T) {
	t.Parallel()
	requests, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer requests.Close()
	defer in.Close()
	piece := framed(t, &reply{kind: replyPrinted, stdout: bytes.Repeat([]byte("x"), streamLimit/4)})
	for name, c := range map[string]struct {
		sent []byte
		good bool
	}{
		"as much as may be": {append(bytes.Repeat(piece, 4), framed(t, wellBehaved())...), true},
		"more":              {append(bytes.Repeat(piece, 5), framed(t, wellBehaved())...), false},
		"nothing":           {append(framed(t, &reply{kind: replyPrinted}), framed(t, wellBehaved())...), false},
		"and no end":        {piece, false},
	} {
		c2 := &child{in: in, out: bufio.NewReaderSize(bytes.NewReader(c.sent), 64<<10), gone: make(chan struct{})}
		if _, err := c2.exchange(t.Context(), &request{source: []byte("x")}, time.Minute, nil); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzReply holds that whatever a child sends is an error or a value, within bounds.
func FuzzReply(f *testing.F) {
	f.Add(framed(f, wellBehaved()))
	f.Add(framed(f, &reply{kind: replyError, errorType: "ValueError", message: "m\xff", traceback: "t", line: -1}))
	f.Add(framed(f, &reply{kind: replyLimit, limit: limitMemory, duration: math.MinInt64}))
	f.Add(framed(f, &reply{kind: replyInvalid, message: "m"}))
	f.Add(framed(f, &reply{kind: replyBroken}))
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 0, 'V'})
	f.Add([]byte{0xff, 0xff, 0xff, 0x03, 'V', 0xff, 0xff, 0xff, 0xff})
	f.Add(append(framed(f, wellBehaved()), framed(f, wellBehaved())...))
	f.Fuzz(func(t *testing.T, sent []byte) {
		if _, err := hear(t, sent); err == nil {
			return
		}
	})
}

// FuzzRequest holds the same of what a child reads.
func FuzzRequest(f *testing.F) {
	f.Add((&request{source: []byte("s"), entry: []byte("e"), input: []byte("1"), memoryMB: 16}).append(nil))
	f.Add([]byte{4, 0, 0, 0, 's'})
	f.Fuzz(func(t *testing.T, sent []byte) {
		q, err := parseRequest(sent)
		if err == nil && !bytes.Equal(q.append(nil), sent) {
			t.Errorf("%x is read as %x", sent, q.append(nil))
		}
	})
}
