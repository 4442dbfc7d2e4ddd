package mcp

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead_IsUTF8(t *testing.T) {
	t.Parallel()
	o, err := Read(json.RawMessage("{\"content\":[{\"type\":\"text\",\"text\":\"a\xffb\"}],\"structuredContent\":{\"x\":\"a\xffb\"}}"))
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := o.Object(); err != nil || string(raw) != "{\"x\":\"a\uFFFDb\",\"message\":\"a\uFFFDb\"}" {
		t.Errorf("got %q, %v", raw, err)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want Output
	}{
		"Text":           {`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, Output{Text: "a\nb", Message: "a\nb"}},
		"TextIsAnObject": {`{"content":[{"type":"text","text":" {\"n\":12345678901234567890}"}]}`, Output{Structured: json.RawMessage(`{"n":12345678901234567890}`), Text: ` {"n":12345678901234567890}`, Message: ` {"n":12345678901234567890}`}},
		"TextIsAList":    {`{"content":[{"type":"text","text":"[1]"}]}`, Output{Text: "[1]", Message: "[1]"}},
		"Structured":     {`{"structuredContent":{"a": 1},"content":[]}`, Output{Structured: json.RawMessage(`{"a": 1}`), Message: `{"a":1}`}},
		"StructuredWins": {`{"structuredContent":{"a":1},"content":[{"type":"text","text":"{\"b\":2}"}]}`, Output{Structured: json.RawMessage(`{"a":1}`), Text: `{"b":2}`, Message: `{"b":2}`}},
		"Failure":        {`{"isError":true,"content":[{"type":"text","text":"no"}]}`, Output{IsError: true, Text: "no", Message: "no"}},
		"SilentFailure":  {`{"isError":true}`, Output{IsError: true, Message: "the tool failed and did not say why"}},
		"Nothing":        {`{"content":[]}`, Output{Message: "the tool returned nothing"}},
		"Files": {`{"content":[{"type":"image","data":"aGk","mimeType":"image/png"},{"type":"audio","data":"aGk=","mimeType":"audio/wav"},
			{"type":"resource","resource":{"uri":"file:///x/note.txt?a=1","text":"inside"}},{"type":"resource","resource":{"uri":"demo:..","blob":"aGk=","mimeType":"a/b"}},
			{"type":"resource_link","uri":"https://example.com/y","name":"why"}]}`, Output{Message: "image_1.png, audio_2.wav, note.txt, resource_4, why", Files: []File{
			{Sort: "image", Name: "image_1.png", MediaType: "image/png", Data: []byte("hi")},
			{Sort: "audio", Name: "audio_2.wav", MediaType: "audio/wav", Data: []byte("hi")},
			{Sort: "resource", Name: "note.txt", MediaType: "application/octet-stream", URI: "file:///x/note.txt?a=1", Data: []byte("inside")},
			{Sort: "resource", Name: "resource_4", MediaType: "a/b", URI: "demo:..", Data: []byte("hi")},
			{Sort: "link", Name: "why", MediaType: "application/octet-stream", URI: "https://example.com/y"},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Read(json.RawMessage(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for in, want := range map[string]Kind{
		`[]`:                             Protocol,
		`{"content":[{"type":"smell"}]}`: Protocol,
		`{"content":[{"type":"image","data":"%%"}]}`:                                                          Protocol,
		`{"inputRequests":{"a":{}}}`:                                                                          Protocol,
		`{"content":[{"type":"text","text":"` + strings.Repeat("x", MaxText+1) + `"}]}`:                       TooLarge,
		`{"content":[` + strings.Repeat(`{"type":"resource_link"},`, MaxFiles) + `{"type":"resource_link"}]}`: TooLarge,
	} {
		_, err := Read(json.RawMessage(in))
		if e, ok := errors.AsType[*Error](err); !ok || e.Kind != want {
			t.Errorf("%.60s: %v", in, err)
		}
	}
}

func TestOutput_Object(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Output{
		`{"message":"m"}`:              {Message: "m"},
		`{"a":1.50,"message":"m"}`:     {Structured: json.RawMessage(`{"a":1.50}`), Message: "m"},
		`{"message":"own"}`:            {Structured: json.RawMessage(`{"message":"own"}`), Message: "m"},
		`{"result":[1],"message":"m"}`: {Structured: json.RawMessage(`[1]`), Message: "m"},
		`{"z":12345678901234567890,"a":{"y":1.10,"b":"<&>"},"message":"m"}`: {
			Structured: json.RawMessage(`{"z": 12345678901234567890, "a": {"y": 1.10, "b": "<&>"}}`), Message: "m"},
	} {
		got, err := o.Object()
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"content":[{"type":"resource","resource":{"uri":"a/../b","blob":"aGk="}}],"structuredContent":[1]}`)
	f.Fuzz(func(t *testing.T, text string) {
		o, err := Read(json.RawMessage(text))
		if err != nil {
			return
		}
		object, err := o.Object()
		if err != nil || !json.Valid(object) || o.Message == "" {
			t.Errorf("%q: %+v gives %s, %v", text, o, object, err)
		}
		for _, file := range o.Files {
			if file.Sort == "resource" && strings.ContainsAny(file.Name, "/\\\x00") {
				t.Errorf("file name %q", file.Name)
			}
		}
	})
}

// TestDifferences_Digits: a change of a large number in a definition is named.
func TestDifferences_Digits(t *testing.T) {
	t.Parallel()
	got := differences(json.RawMessage(`{"a":1,"n":12345678901234567890}`), json.RawMessage(`{"n":12345678901234567891,"a":1}`))
	if !slices.Equal(got, []string{"n"}) {
		t.Errorf("got %q", got)
	}
}
