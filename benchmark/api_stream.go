package benchmark

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// sampleFrames sends a first signal and returns the frame in which a reader is told of it.
func (m *apiMeasurement) sampleFrames(ctx context.Context, s *apiRunning) ([]byte, error) {
	id, err := s.startStream(ctx)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/executions/"+id+"/events", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() // what is left of it is not wanted
	if err := s.signal(0, id); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(answer.Body)
	var frame strings.Builder
	for lines.Scan() {
		frame.WriteString(lines.Text() + "\n")
		switch {
		case lines.Text() != "":
		case strings.Contains(frame.String(), apiSignalMark(0)):
			return []byte(frame.String()), nil
		default:
			frame.Reset()
		}
	}
	return nil, fmt.Errorf("the stream of execution %q ends without the signal: %w", id, errors.Join(lines.Err(), errUnlike))
}

// startStream starts an execution that waits for signals.
func (s *apiRunning) startStream(ctx context.Context) (string, error) {
	if s.name == APISideBare {
		return apiExecution(0), nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/api/v1/workflows/"+apiStream+"/execute", strings.NewReader("{}"))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	var started struct {
		ID string `json:"execution_id"`
	}
	err = json.NewDecoder(answer.Body).Decode(&started)
	if err := errors.Join(err, answer.Body.Close()); err != nil || started.ID == "" {
		return "", fmt.Errorf("the server answers %s: %w", answer.Status, errors.Join(err, errUnlike))
	}
	return started.ID, nil
}

// signal sends the n-th signal.
func (s *apiRunning) signal(n int, execution string) error {
	c := s.clients.list[0]
	body, err := json.Marshal(map[string]any{"node_id": "w" + strconv.Itoa(n), "input_data": map[string]any{"signal": "go", "payload": map[string]string{"mark": apiSignalMark(n)}}})
	if err != nil {
		return err
	}
	_, err = c.doRequest(c.request("POST", "/executions/"+execution+"/input", string(body)))
	return err
}

// stream lets many readers follow one execution and sends it signals.
func (m *apiMeasurement) stream(ctx context.Context, side *apiRunning) (_ APIStream, err error) {
	f := APIStream{Side: side.name, Readers: m.Readers, Signals: m.signals}
	id, err := side.startStream(ctx)
	if err != nil {
		return f, err
	}
	alone, err := side.Usage()
	if err != nil {
		return f, err
	}
	readers := make([]*streamReader, 0, m.Readers)
	defer func() {
		for _, r := range readers {
			err = errors.Join(err, r.conn.Close())
		}
		for _, r := range readers {
			for range r.seen { // until it has ended
			}
		}
	}()
	for range m.Readers {
		r, err := followSide(ctx, side.APISide, id)
		if err != nil {
			return f, err
		}
		go r.run() // it ends with the connection
		readers = append(readers, r)
	}
	with, err := side.Usage()
	if err != nil {
		return f, err
	}
	f.MemoryKB = (with.ResidentMB - alone.ResidentMB) * 1024 / float64(m.Readers)
	var all, last []time.Duration
	for n := range m.signals {
		begin := time.Now()
		if err := side.signal(n, id); err != nil {
			return f, err
		}
		longest := time.Duration(0)
		for _, r := range readers {
			select {
			case at, ok := <-r.seen:
				if !ok {
					return f, errStreamEnded
				}
				all = append(all, at.Sub(begin))
				longest = max(longest, at.Sub(begin))
			case <-ctx.Done():
				return f, context.Cause(ctx)
			}
		}
		last = append(last, longest)
	}
	after, err := side.Usage()
	if err != nil {
		return f, err
	}
	f.P50MS, f.P99MS, f.LastMS = milliseconds(quantile(all, .5)), milliseconds(quantile(all, .99)), milliseconds(quantile(last, .5))
	f.CPUMicros = float64((after.CPU - with.CPU).Microseconds()) / float64(m.Readers*m.signals)
	return f, nil
}
