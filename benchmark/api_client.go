package benchmark

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// benchClient is one client of a side, with a connection that is kept. It does as little as a client can, since it shares the
// machine with what is measured.
type benchClient struct {
	side *APISide
	host string
	conn net.Conn
	in   *bufio.Reader
	body bytes.Buffer
}

func dialSide(ctx context.Context, side *APISide) (*benchClient, error) {
	u, err := url.Parse(side.URL)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, err
	}
	return &benchClient{side: side, host: u.Host, conn: conn, in: bufio.NewReaderSize(conn, 4<<10)}, nil
}

// request is what is sent for a request to the API.
func (c *benchClient) request(method, path, body string) []byte {
	return c.plainRequest(method, "/api/v1"+path, body)
}

// plainRequest is what is sent for a request to any path.
func (c *benchClient) plainRequest(method, path, body string) []byte {
	text := method + " " + path + " HTTP/1.1\r\nHost: " + c.host + "\r\nAuthorization: Bearer " + c.side.Token + "\r\n"
	if body != "" {
		text += "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	return []byte(text + "\r\n" + body)
}

// doRequest sends a request and reads the whole answer, which is valid until the next.
func (c *benchClient) doRequest(request []byte) ([]byte, error) {
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	c.body.Reset()
	_, err = c.body.ReadFrom(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 || answer.StatusCode == http.StatusAccepted {
		return nil, fmt.Errorf("the server answers %s: %s", answer.Status, c.body.String())
	}
	return c.body.Bytes(), nil
}

// benchClients are the connections of one side. More are made when more are needed.
type benchClients struct {
	side *APISide
	list []*benchClient
}

func (b *benchClients) need(ctx context.Context, n int) error {
	for len(b.list) < n {
		c, err := dialSide(ctx, b.side)
		if err != nil {
			return err
		}
		b.list = append(b.list, c)
	}
	return nil
}

func (b *benchClients) close() error {
	var errs []error
	for _, c := range b.list {
		errs = append(errs, c.conn.Close())
	}
	return errors.Join(errs...)
}

// load lets so many clients make so many requests altogether, and returns how long all and each of them took.
func (b *benchClients) load(ctx context.Context, clients, requests int, request func(c *benchClient, n int) []byte) (took time.Duration,
	each []time.Duration, err error) {
	if requests == 0 { // a connection on which nothing is sent would be ended before its time comes
		return 0, nil, nil
	}
	if err := b.need(ctx, clients); err != nil {
		return 0, nil, err
	}
	each = make([]time.Duration, requests)
	var next atomic.Int64
	start := time.Now()
	err = together(clients, func(worker int) error {
		c := b.list[worker]
		for {
			n := int(next.Add(1)) - 1
			if n >= requests || ctx.Err() != nil {
				return context.Cause(ctx)
			}
			text := request(c, n)
			begin := time.Now()
			if _, err := c.doRequest(text); err != nil {
				return err
			}
			each[n] = time.Since(begin)
		}
	})
	return time.Since(start), each, err
}

// quantile is the value below which a part of a list lies.
func quantile(list []time.Duration, part float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}

// streamReader follows an execution and says when it has seen the mark of a signal.
type streamReader struct {
	*benchClient
	seen chan time.Time
}

// followSide begins to follow an execution; it returns when the answer has begun.
func followSide(ctx context.Context, side *APISide, execution string) (*streamReader, error) {
	c, err := dialSide(ctx, side)
	if err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(c.request("GET", "/executions/"+execution+"/events?after=1", "")); err != nil {
		return nil, errors.Join(err, c.conn.Close())
	}
	for { // the head of the answer, and of its first piece
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return nil, errors.Join(err, c.conn.Close())
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
	}
	return &streamReader{c, make(chan time.Time, 1)}, nil
}

// run tells of every mark until the connection ends.
func (r *streamReader) run() {
	for n := 0; ; n++ {
		for mark := []byte(apiSignalMark(n)); ; {
			line, err := r.in.ReadSlice('\n')
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				close(r.seen)
				return
			}
			if bytes.Contains(line, mark) {
				break
			}
		}
		r.seen <- time.Now()
	}
}

var errStreamEnded = errors.New("a stream ended before its time") // read-only
