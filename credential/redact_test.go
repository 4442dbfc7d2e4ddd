package credential_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tandem/credential"
	"tandem/fault"
)

const mark = credential.Mark

func holding(secrets ...string) *credential.Redactor {
	r := &credential.Redactor{}
	r.Hold(secrets...)
	return r
}

func asciiEscape(s string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

func jsonText(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(data[1 : len(data)-1])
}

// encodings are ways in which a secret leaves a program, written apart from the code under test.
func encodings() map[string]func(string) string {
	return map[string]func(string) string{
		"plain":           func(s string) string { return s },
		"json":            jsonText,
		"json in json":    func(s string) string { return jsonText(jsonText(s)) },
		"go quoted":       func(s string) string { q := fmt.Sprintf("%q", s); return q[1 : len(q)-1] },
		"base64":          func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64 raw":      func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
		"base64 url":      func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
		"base64 raw url":  func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
		"base64 in query": func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
		"query":           url.QueryEscape,
		"path":            url.PathEscape,
		"hex":             func(s string) string { return hex.EncodeToString([]byte(s)) },
		"hex upper":       func(s string) string { return fmt.Sprintf("%X", s) },
	}
}

func TestRedactor_Text(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		secrets []string
		text    string
		want    string
	}{
		{"nothing held", nil, "sk-123456", "sk-123456"},
		{"everywhere", []string{"sk-123456"}, "sk-123456 and sk-123456", mark + " and " + mark},
		{"too short", []string{"12345", ""}, "12345", "12345"},
		{"longest", []string{"secret", "secret-and-more"}, "secret-and-more secret", mark + " " + mark},
		{"overlapping leave nothing", []string{"abcdef", "defghi"}, "xabcdefghix", "x" + mark + "x"},
		{"inside another", []string{"xxabcdefxx", "abcdef"}, "xxabcdefx", "xx" + mark + "x"},
		{"adjacent", []string{"abcdef"}, "abcdefabcdef", mark},
		{"nearly", []string{"abcdef"}, "abcdeg abcde", "abcdeg abcde"},
		{"part of the mark", []string{"redacted"}, "redacted", "redacted"},
		{"with space around", []string{"  token-1\n"}, "token-1", mark},
		{"Chinese", []string{"密码很长"}, "是密码很长。", "是" + mark + "。"},
		{"Chinese in JSON", []string{"密码很长"}, `"\u5bc6\u7801\u5f88\u957f"`, `"` + mark + `"`},
		{"emoji in JSON", []string{"🔑🔑🔑"}, `\ud83d\udd11\uD83D\uDD11 \uD83D\uDD11\uD83D\uDD11\uD83D\uDD11`, `\ud83d\udd11\uD83D\uDD11 ` + mark},
		{"lower escapes", []string{"a/b+c=d"}, "?k=a%2fb%2bc%3dd", "?k=" + mark},
		{"browser escapes", []string{"it's (me)!"}, "it's%20(me)!", mark},
		{"HTML", []string{`<"tag">`}, "&lt;&#34;tag&#34;&gt;", mark},
		{"slashes", []string{"abc/def"}, `abc\/def`, mark},
		{"a key line by line", []string{"-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----\n"}, "1: kqhkiG9w0BAQEF -----BEGIN KEY-----", "1: " + mark + " -----BEGIN KEY-----"},
		{"address", []string{"123:AAF-x_y"}, "https://api.example.com/bot123:AAF-x_y/send", "https://api.example.com/bot" + mark + "/send"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := holding(c.secrets...)
			if got := r.Text(c.text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			in := []byte(c.text)
			if got := r.Bytes(in); string(got) != c.want || string(in) != c.text {
				t.Errorf("bytes: got %q from %q, want %q", got, in, c.want)
			}
		})
	}
}

func TestRedactor_BasicAuthentication(t *testing.T) {
	t.Parallel()
	const password = "p4ssw0rd-canary"
	r := holding(password)
	for _, user := range []string{"", "u", "me", "ann", "hello"} {
		for _, after := range []string{"", "x", "yz", "end"} {
			value := base64.StdEncoding.EncodeToString([]byte(user + ":" + password + after))
			got := r.Text("Basic " + value)
			if !strings.Contains(got, mark) || len(got) > len("Basic ")+len(mark)+2*len(user)+2*len(after)+4 {
				t.Errorf("%q before and %q after: %q", user, after, got)
			}
			left, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimPrefix(strings.ReplaceAll(got, mark, ""), "Basic "), "="))
			if err == nil && strings.Contains(string(left), password[3:8]) {
				t.Errorf("%q can be decoded from what is left", left)
			}
		}
	}
}

// secretText draws secrets that have all that makes encodings differ, but no bracket, which the mark could complete.
func secretText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		runes := rapid.SliceOfN(rapid.SampledFrom([]rune("abAB01+/=%&<>\"'\\ \t:;?#~é密🔑")), 6, 24).Draw(t, "runes")
		return strings.TrimSpace("k" + string(runes))
	})
}

func TestRedactor_NoSecretSurvivesAnySplit(t *testing.T) {
	t.Parallel()
	ways := encodings()
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfN(secretText(), 1, 5).Draw(t, "secrets")
		for i, s := range secrets {
			if len(s) < credential.MinSecret {
				secrets[i] = s + "-long-enough"
			}
		}
		parts := []string{""}
		for _, s := range secrets {
			for _, encode := range ways {
				parts = append(parts, encode(s))
			}
		}
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(parts), rapid.StringMatching(`[a-z01+/=%"\\ ]{0,8}`)), 0, 12).Draw(t, "text"), "")
		r := holding(secrets...)
		whole := r.Text(text)

		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 20)).Draw(t, "piece")
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != whole {
			t.Fatalf("in pieces %q, whole %q", out.String(), whole)
		}
		for _, s := range secrets {
			for name, encode := range ways {
				if strings.Contains(whole, encode(s)) {
					t.Fatalf("%q survives as %s in %q", s, name, whole)
				}
			}
		}
		if again := r.Text(whole); again != whole {
			t.Fatalf("redacting again changed %q to %q", whole, again)
		}
	})
}

func TestStream_PassesOrdinaryTextAtOnce(t *testing.T) {
	t.Parallel()
	s := holding("secret-value").Stream()
	for _, c := range []struct{ in, out string }{
		{"hello ", "hello "}, {"a sec", "a "}, {"ond", "second"}, {" secret-v", " "}, {"alue", mark}, {" done sec", " done "},
	} {
		if got := s.Push(c.in); got != c.out {
			t.Errorf("pushed %q, got %q, want %q", c.in, got, c.out)
		}
	}
	if got := s.End(); got != "sec" {
		t.Errorf("the end gave %q", got)
	}
	if got := s.Push("ret-value") + s.End(); got != "ret-value" {
		t.Errorf("another text began inside the old one: %q", got)
	}
}

func TestStream_KnowsSecretsHeldLater(t *testing.T) {
	t.Parallel()
	r := holding("first-secret")
	s := r.Stream()
	got := s.Push("one first-sec")
	r.Hold("second-secret", "first-section")
	got += s.Push("tion two second-")
	r.Hold("third-secret")
	got += s.Push("secret three third-secret") + s.End()
	if want := "one " + mark + " two " + mark + " three " + mark; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestWriter_ReportsErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	w := holding("secret-value").Writer(brokenWriter{broken})
	if n, err := w.Write([]byte("secret")); n != 6 || err != nil {
		t.Fatalf("held back: %d, %v", n, err)
	}
	if _, err := w.Write([]byte(" text")); !errors.Is(err, broken) {
		t.Errorf("write: %v", err)
	}
	if err := w.Close(); !errors.Is(err, broken) {
		t.Errorf("close: %v", err)
	}
}

func TestRedactor_JSON(t *testing.T) {
	t.Parallel()
	r := holding("secret\"value", "1234567", "plain-secret", `\u0061bcdef`)
	for _, c := range []struct{ in, want string }{
		{`{"a":"plain-secret"}`, `{"a":"[redacted]"}`},
		{`{"plain-secret": [true, "x"]}`, `{"[redacted]": [true, "x"]}`},
		{`{"a":"\u0070lain-secret\n"}`, `{"a":"[redacted]\n"}`},
		{`{"a":"secret\"value <b>"}`, `{"a":"[redacted] <b>"}`},
		{`[1234567, -12345678.5, 123456]`, `["[redacted]", "[redacted]", 123456]`},
		{`{"a":"{\"b\":\"secret\\\"value\"}"}`, `{"a":"{\"b\":\"[redacted]\"}"}`},
		{`{"a":"\u0061bcdef"}`, `{"a":"[redacted]"}`},
		{`{"a":"kept\u00e9\/"}`, `{"a":"kept\u00e9\/"}`},
		{` "plain-secret" `, ` "[redacted]" `},
		{`1234567`, `"[redacted]"`},
		{`{"a":plain-secret`, `{"a":[redacted]`},
		{``, ``},
	} {
		if got := r.JSON(json.RawMessage(c.in)); string(got) != c.want {
			t.Errorf("%s gave %s, want %s", c.in, got, c.want)
		}
	}
}

func TestRedactor_JSONStaysValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfN(rapid.OneOf(secretText(), rapid.StringMatching(`[0-9]{6,8}`), rapid.StringMatching(`[a-f"\\u0]{6,9}`)), 1, 4).Draw(t, "secrets")
		r := holding(secrets...)
		part := rapid.OneOf(rapid.SampledFrom(secrets), rapid.String(), rapid.Custom(func(t *rapid.T) string { return jsonText(rapid.SampledFrom(secrets).Draw(t, "s")) }))
		literal := rapid.Custom(func(t *rapid.T) string {
			text := part.Draw(t, "a") + part.Draw(t, "b")
			if rapid.Bool().Draw(t, "escape") && !strings.ContainsFunc(text, func(r rune) bool { return r > 0xFFFF }) {
				return `"` + asciiEscape(text) + `"`
			}
			return `"` + jsonText(text) + `"`
		})
		value := rapid.OneOf(literal, rapid.StringMatching(`[1-9][0-9]{0,9}(\.[0-9]{1,7})?`), rapid.Just("null"))
		var members []string
		for range rapid.IntRange(0, 6).Draw(t, "members") {
			members = append(members, literal.Draw(t, "name")+": ["+value.Draw(t, "value")+","+value.Draw(t, "value")+"]")
		}
		document := "{" + strings.Join(members, ",") + "}"
		if !json.Valid([]byte(document)) {
			t.Fatalf("the test made broken JSON: %s", document)
		}
		got := r.JSON(json.RawMessage(document))
		if !json.Valid(got) {
			t.Fatalf("%s became %s", document, got)
		}
		decoder := json.NewDecoder(bytes.NewReader(got))
		decoder.UseNumber()
		for {
			token, err := decoder.Token()
			if err != nil {
				break
			}
			text := fmt.Sprint(token)
			for _, s := range secrets {
				if len(s) >= credential.MinSecret && !strings.ContainsAny(s, "[]") && !strings.Contains(mark, s) && strings.Contains(text, s) {
					t.Fatalf("%q survives in %q of %s", s, text, got)
				}
			}
		}
	})
}

func TestRedactor_ReturnsWhatIsClean(t *testing.T) {
	t.Parallel()
	r := holding("secret-value")
	clean := []byte(`{"a":"b"}`)
	if got := r.Bytes(clean); &got[0] != &clean[0] {
		t.Error("clean bytes were copied")
	}
	if got := r.JSON(clean); &got[0] != &clean[0] {
		t.Error("clean JSON was copied")
	}
	text := string(clean)
	if got := r.Text(text); unsafe.StringData(got) != unsafe.StringData(text) {
		t.Error("clean text was copied")
	}
}

func TestRedactor_HoldIsCounted(t *testing.T) {
	t.Parallel()
	r := &credential.Redactor{}
	first, second := r.Hold("secret-value"), r.Hold("secret-value")
	first()
	first() // once counts
	if got := r.Text("secret-value"); got != mark {
		t.Errorf("released once of twice: %q", got)
	}
	second()
	for i := range 200 { // enough to forget
		r.Hold(fmt.Sprintf("other-secret-%d", i))()
	}
	if got := r.Text("secret-value"); got != "secret-value" {
		t.Errorf("released twice: %q", got)
	}
}

func TestRedactor_ConcurrentUse(t *testing.T) {
	t.Parallel()
	r := holding("always-secret")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 100 {
				own := fmt.Sprintf("secret-%d-%d", i, j)
				release := r.Hold(own)
				if got := r.Text("a " + own + " always-secret"); got != "a "+mark+" "+mark {
					t.Errorf("got %q", got)
				}
				release()
			}
		})
	}
	all.Wait()
}

func TestRedactor_Fault(t *testing.T) {
	t.Parallel()
	r := holding("secret-value")
	cause := errors.New("dial secret-value")
	e := fault.New(fault.RemoteError, "said secret-value").WithCause(cause).With("url", "https://h/secret-value").With("n", 1)
	got := r.Fault(e)
	data, err := json.Marshal(got)
	if err != nil || strings.Contains(string(data), "secret-value") || strings.Contains(fmt.Sprintf("%+v", got), "secret-value") || errors.Is(got, cause) {
		t.Errorf("the secret is in %s, %v", data, err)
	}
	if got.Code != fault.RemoteError || !got.Retryable || got.Message != "said "+mark || got.Detail != "dial "+mark {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(e.Message, "secret-value") {
		t.Error("the original changed")
	}
	if r.Fault(nil) != nil {
		t.Error("no error became one")
	}
	plain := r.Fault(fault.New(fault.NotFound, "none").With("n", 1))
	if diff := cmp.Diff(map[string]any{"n": 1}, plain.Details); diff != "" {
		t.Errorf("clean facts changed (-want +got):\n%s", diff)
	}
}

func TestSensitiveHeader(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Authorization", "authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "x_api_key", "Api-Key", "apikey", "X-Goog-Api-Key",
		"X-Auth-Token", "X-Amz-Security-Token", "Private-Token", "X-Gitlab-Token", "X-Hub-Signature-256", "X-Slack-Signature", "Mcp-Session-Id",
		"X-Telegram-Bot-Api-Secret-Token", "Ocp-Apim-Subscription-Key", "X-Functions-Key", "X-Vault-Token", "X-CSRFToken", "X-Client-Secret", "X-Auth",
	} {
		if !credential.SensitiveHeader(name) {
			t.Errorf("%s is shown", name)
		}
	}
	for _, name := range []string{
		"Content-Type", "Idempotency-Key", "Sec-WebSocket-Key", "ETag", "X-Ratelimit-Remaining-Tokens", "Retry-After", "Location", "Www-Authenticate", "X-Request-Id", "",
	} {
		if credential.SensitiveHeader(name) {
			t.Errorf("%s is hidden", name)
		}
	}
}

func TestRedactor_Header(t *testing.T) {
	t.Parallel()
	in := http.Header{"Authorization": {"Bearer x", "y"}, "Location": {"https://h/?k=secret-value"}, "Accept": nil}
	got := holding("secret-value").Header(in)
	want := map[string][]string{"Authorization": {mark, mark}, "Location": {"https://h/?k=" + mark}, "Accept": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if in.Get("Authorization") != "Bearer x" {
		t.Error("the original changed")
	}
}

// benchmarkText is a megabyte of JSON-like text; every hundredth line has a secret.
func benchmarkText(secrets []string) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for line := 0; b.Len() < 1<<20; line++ {
		fmt.Fprintf(&b, `{"id":%d,"name":"customer %x","note":"The quick brown fox jumps over the lazy dog","sum":%d},`, line, random.Uint64(), random.Uint32())
		if line%100 == 0 {
			b.WriteString(`"` + secrets[line/100%len(secrets)] + `",`)
		}
	}
	return b.String()[:1<<20]
}

func benchmarkSecrets() []string {
	random := rand.New(rand.NewPCG(3, 4))
	secrets := make([]string, 100)
	for i := range secrets {
		raw := make([]byte, 30)
		for j := range raw {
			raw[j] = byte(random.Uint32())
		}
		secrets[i] = "sk-" + base64.StdEncoding.EncodeToString(raw)
	}
	return secrets
}

func BenchmarkRedactor(b *testing.B) {
	secrets := benchmarkSecrets()
	text := benchmarkText(secrets)
	document := json.RawMessage("[" + strings.TrimRight(text[:strings.LastIndex(text, "},")+1], ",") + "]")
	r := holding(secrets...)
	b.Run("Text1MB100Secrets", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			r.Text(text)
		}
	})
	b.Run("JSON1MB100Secrets", func(b *testing.B) {
		b.SetBytes(int64(len(document)))
		b.ReportAllocs()
		for b.Loop() {
			r.JSON(document)
		}
	})
	b.Run("StreamBy64Bytes", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			s := r.Stream()
			for rest := text; rest != ""; {
				n := min(64, len(rest))
				s.Push(rest[:n])
				rest = rest[n:]
			}
			s.End()
		}
	})
	b.Run("Build100Secrets", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			holding(secrets...).Text("")
		}
	})
	b.Run("HoldAgain", func(b *testing.B) {
		for b.Loop() {
			r.Hold(secrets[0])()
		}
	})
}
