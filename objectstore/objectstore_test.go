package objectstore

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/outbound"
)

// plain reads and closes; it cannot seek.
type plain struct {
	io.Reader
	closed *int
}

func (p plain) Close() error { *p.closed++; return nil }

// content is a text that counts how often it is opened and closed.
func content(text string, seekable bool) (c Content, opened, closed *int) {
	opened, closed = new(int), new(int)
	return Content{Size: int64(len(text)), Open: func() (io.ReadCloser, error) {
		*opened++
		r := strings.NewReader(text)
		if seekable {
			return struct {
				io.ReadSeeker
				io.Closer
			}{r, plain{closed: closed}}, nil
		}
		return plain{io.MultiReader(r), closed}, nil
	}}, opened, closed
}

func TestContent_Measure(t *testing.T) {
	t.Parallel()
	c, opened, closed := content("abcdefgh", false)
	m, err := c.Measure(t.Context(), 3, func() hash.Hash { return md5.New() })
	if err != nil {
		t.Fatal(err)
	}
	if m.Hex() != "9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab" || len(m.Parts) != 3 || *opened != 1 || *closed != 1 {
		t.Errorf("%s, %d parts, opened %d, closed %d", m.Hex(), len(m.Parts), *opened, *closed)
	}
	for i, want := range []string{"abc", "def", "gh"} {
		sum := md5.Sum([]byte(want))
		if p := m.Parts[i]; p.Offset != int64(3*i) || p.Size != int64(len(want)) || !bytes.Equal(p.Sums[0], sum[:]) {
			t.Errorf("part %d is %+v", i, p)
		}
	}
	c, _, _ = content("", false)
	if m, err := c.Measure(t.Context(), 3); err != nil || len(m.Parts) != 1 || m.Parts[0].Size != 0 {
		t.Errorf("of nothing: %+v, %v", m, err)
	}
	c, _, _ = content("abc", false)
	c.Size = 4
	if _, err := c.Measure(t.Context(), 3); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("of less than announced: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Measure(ctx, 3); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("when stopped: %v", err)
	}
}

func TestReader_Section(t *testing.T) {
	t.Parallel()
	for _, seekable := range []bool{true, false} {
		c, opened, closed := content("abcdefgh", seekable)
		r := c.Reader(t.Context())
		read := func(s io.Reader) string {
			t.Helper()
			data, err := io.ReadAll(s)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		if a, b := read(r.Section(0, 3)), read(r.Section(3, 3)); a != "abc" || b != "def" || *opened != 1 {
			t.Errorf("%q, %q, opened %d times", a, b, *opened)
		}
		if again := read(r.Section(1, 2)); again != "bc" || *opened != 2 || *closed != 1 {
			t.Errorf("%q, opened %d and closed %d times", again, *opened, *closed)
		}
		late := r.Section(6, 2)
		if n, err := late.Seek(0, io.SeekEnd); n != 2 || err != nil {
			t.Errorf("the end is %d, %v", n, err)
		}
		if _, err := late.Seek(1, io.SeekStart); err != nil {
			t.Error(err)
		}
		if got := read(late); got != "h" {
			t.Errorf("got %q", got)
		}
		if _, err := late.Seek(-9, io.SeekCurrent); err == nil {
			t.Error("sought before the start")
		}
		if err := r.Close(); err != nil || *closed != 2 {
			t.Errorf("closed %d times, %v", *closed, err)
		}
	}
}

// TestReader_OverMeansOver: a transport that still reads a body must not take bytes that belong to the next.
func TestReader_OverMeansOver(t *testing.T) {
	t.Parallel()
	c, _, _ := content(strings.Repeat("x", 1<<20), false)
	r := c.Reader(t.Context())
	old := r.Section(0, 1<<19)
	var readers sync.WaitGroup
	started := make(chan struct{})
	readers.Go(func() {
		buffer := make([]byte, 100)
		for first := true; ; first = false {
			_, err := old.Read(buffer)
			if first {
				close(started)
			}
			if err != nil {
				if fault.CodeOf(err) != fault.Canceled && err != io.EOF {
					t.Errorf("got %v", err)
				}
				return
			}
		}
	})
	<-started
	next := r.Section(0, 1<<20)
	if data, err := io.ReadAll(next); err != nil || len(data) != 1<<20 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	readers.Wait()
	closed := r.Section(0, 5)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := closed.Read(make([]byte, 1)); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("read after close: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPartSize(t *testing.T) {
	t.Parallel()
	for size, want := range map[int64]int64{0: 8 << 20, 1: 8 << 20, 100 << 20: 8 << 20, 5 << 40: 583 << 20} {
		got := PartSize(size)
		if got != want || (size+got-1)/got > 10_000 {
			t.Errorf("%d: parts of %d, want %d", size, got, want)
		}
	}
}

func TestCheckKey(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "/a", "a/", "...", "a/..b", "二", "a b"} {
		if err := CheckKey(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a/../b", "./a", "a/.", "a\nb", "\xff", strings.Repeat("x", 1025)} {
		if err := CheckKey(bad); fault.CodeOf(err) != fault.InvalidConfig {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if got := EscapeKey("a b/~ü+%"); got != "a%20b/~%C3%BC%2B%25" {
		t.Errorf("got %s", got)
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	u := &url.URL{Scheme: "https", Host: "store.example.com", RawQuery: "sig=secret"}
	e := Refusal(&outbound.Response{Status: 503, Header: http.Header{"Retry-After": {"9"}}, URL: u}, Said{Code: "SlowDown", Message: "Please\x00 wait.\nRequestId: 1", As: fault.RateLimited}, now)
	if e.Error() != `rate_limited: host "store.example.com" answered 503 SlowDown: Please wait` || e.RetryAfter != 9*time.Second || !e.Fault.Retryable || e.Fault.Details["status_code"] != 503 || e.Fault.Details["service_code"] != "SlowDown" {
		t.Errorf("got %v after %v, %v", e, e.RetryAfter, e.Fault.Details)
	}
	if e := Refusal(&outbound.Response{Status: 302, URL: u}, Said{}, now); e.Fault.Code != fault.RemoteRejected || strings.Contains(e.Error(), "secret") {
		t.Errorf("got %v", e)
	}
	long := Refusal(&outbound.Response{Status: 400, URL: u}, Said{Code: strings.Repeat("c", 500), Message: strings.Repeat("ü", 500)}, now)
	if len(long.Fault.Message) > 500 {
		t.Errorf("%d bytes", len(long.Fault.Message))
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	var tokens Tokens
	now := time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	fetches := 0
	get := func(data string, at time.Time, renew bool) string {
		t.Helper()
		token, fresh, err := tokens.Get(t.Context(), credential.Opened{ID: "c", Data: []byte(data)}, func() time.Time { return at }, renew, func(context.Context) (string, time.Duration, error) {
			fetches++
			return strings.Repeat("t", fetches), time.Hour, nil
		})
		if err != nil || fresh && len(token) != fetches {
			t.Fatalf("%q, %v, %v", token, fresh, err)
		}
		return token
	}
	for _, c := range []struct {
		data  string
		after time.Duration
		renew bool
		want  string
	}{
		{"1", 0, false, "t"}, {"1", 58 * time.Minute, false, "t"}, {"2", 0, false, "tt"}, {"1", 59 * time.Minute, false, "ttt"},
		{"1", 60 * time.Minute, true, "tttt"}, {"1", 61 * time.Minute, false, "tttt"},
	} {
		if got := get(c.data, now.Add(c.after), c.renew); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
	broken := errors.New("no")
	if _, _, err := tokens.Get(t.Context(), credential.Opened{ID: "x"}, time.Now, false, func(context.Context) (string, time.Duration, error) { return "", 0, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
