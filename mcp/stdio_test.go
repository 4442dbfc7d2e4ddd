package mcp

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
)

// hear reads all that a server prints, as a session does, and holds that it ends with an error, takes no more messages than lines,
// and keeps no more of a line than a message may have.
func hear(t *testing.T, printed io.Reader, lines int) (messages int, err error) {
	t.Helper()
	x := &exchange{}
	table := &exchanges{}
	table.addExchange("1", x)
	s := &stdio{table: table, lines: bufio.NewReaderSize(printed, 64), note: func(line string) {
		if len(line) > maxLogLine {
			t.Fatalf("a line of %d bytes is noted", len(line))
		}
	}}
	for n := 0; ; n++ {
		if n > lines+1 {
			t.Fatalf("%d lines made more than %d messages", lines, n)
		}
		m, err := s.next()
		if err != nil {
			return messages, err
		}
		if m == nil {
			t.Fatal("neither a message nor an error")
		}
		messages++
	}
}

func TestStdio_Hostile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		printed  string
		messages int
	}{
		"Nothing":      {"", 0},
		"Blank":        {"\n\r\n \n", 0},
		"Chatter":      {"starting…\nready\n", 0},
		"Answer":       {`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", 1},
		"WrongID":      {`{"jsonrpc":"2.0","id":77,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":"x","result":{}}` + "\n", 2},
		"CutOff":       {`{"jsonrpc":"2.0","id":1,"resu`, 0},
		"NoMessage":    {`{"hello":1}` + "\n", 0},
		"NotUTF8":      {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"\xff\":\"\xfe\"}}\n", 1},
		"Deep":         {`{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}\n", 0},
		"ManyAnswers":  {strings.Repeat(`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n", 1000), 1000},
		"LongChatter":  {strings.Repeat("x", 1<<20) + "\n", 0},
		"NUL":          {"\x00\x00\n", 0},
		"HugeID":       {`{"jsonrpc":"2.0","id":1e999,"result":{}}` + "\n", 0},
		"FractionalID": {`{"jsonrpc":"2.0","id":1.5,"result":{}}` + "\n", 1},
	} {
		messages, err := hear(t, strings.NewReader(c.printed), strings.Count(c.printed, "\n"))
		if err == nil || messages != c.messages {
			t.Errorf("%s: %d messages, %v", name, messages, err)
		}
	}
	// More than a message may have, without an end: none of it is kept but its edges.
	endless := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"result":"`), io.LimitReader(xs{}, 2*maxMessage), strings.NewReader("\"}\n"))
	if messages, err := hear(t, endless, 1); messages != 1 || err == nil {
		t.Errorf("%d messages, %v", messages, err)
	}
}

type xs struct{}

func (xs) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("x"), len(p))), nil }

// FuzzStdio holds that whatever a tool server prints is a message, chatter or the end.
func FuzzStdio(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"))
	f.Add([]byte("chatter\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n"))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"\xff\"}}\n["))
	f.Add([]byte("[]\n{}\n\x00"))
	f.Fuzz(func(t *testing.T, printed []byte) {
		if _, err := hear(t, bytes.NewReader(printed), bytes.Count(printed, []byte("\n"))); err == nil {
			t.Error("it never ends")
		}
	})
}
