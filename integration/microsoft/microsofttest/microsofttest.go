// Package microsofttest is a stand-in for Microsoft Graph: what Tandem calls of its mailboxes, with its paths, rounds of changes, errors
// and forms. Tests import it, and nothing else does.
package microsofttest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/mailbox/mailboxtest"
)

// inboxID is the id of the inbox.
const inboxID = "AAMk/Inbox+1="

// page is how many messages an answer has at most, whatever is asked for.
const page = 40

// Graph starts a stand-in, which ends with the test.
func Graph(t testing.TB) (address string, inbox *mailboxtest.Inbox) {
	t.Helper()
	inbox = mailboxtest.NewInbox()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	refuse := func(w http.ResponseWriter, status int, code string) {
		mailboxtest.Answer(w, status, map[string]any{"error": map[string]any{"code": code, "message": "The request was refused: " + code,
			"innerError": map[string]any{}}})
	}
	handle := func(pattern string, do func(w http.ResponseWriter, r *http.Request)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if !inbox.Admit(w, r) {
				return
			}
			if !strings.Contains(r.Header.Get("Prefer"), `IdType="ImmutableId"`) {
				refuse(w, http.StatusBadRequest, "ErrorInvalidRequest")
				return
			}
			do(w, r)
		})
	}
	handle("GET /v1.0/me/mailFolders/inbox", func(w http.ResponseWriter, _ *http.Request) {
		mailboxtest.Answer(w, http.StatusOK, map[string]any{"id": inboxID})
	})
	handle("GET /v1.0/me/mailFolders", func(w http.ResponseWriter, r *http.Request) {
		found := []any{}
		if r.URL.Query().Get("$filter") == "displayName eq 'Ann''s mail'" {
			found = append(found, map[string]any{"id": "AAMk/Ann"})
		}
		mailboxtest.Answer(w, http.StatusOK, map[string]any{"value": found})
	})
	handle("GET /v1.0/me/mailFolders/{folder}/childFolders", func(w http.ResponseWriter, r *http.Request) {
		found := []any{}
		if r.PathValue("folder") == "AAMk/Ann" && r.URL.Query().Get("$filter") == "displayName eq 'Invoices'" {
			found = append(found, map[string]any{"id": "AAMk/Invoices"})
		}
		mailboxtest.Answer(w, http.StatusOK, map[string]any{"value": found})
	})
	handle("GET /v1.0/me/mailFolders/{folder}/messages/delta", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		number, filter := 0, strings.TrimPrefix(q.Get("$filter"), "receivedDateTime ge ")
		if token := q.Get("$deltatoken") + q.Get("$skiptoken"); token != "" {
			text := ""
			text, filter, _ = strings.Cut(token, " ")
			number, _ = strconv.Atoi(text)
		}
		from, err := time.Parse(time.RFC3339, filter)
		if err != nil || r.PathValue("folder") != inboxID {
			refuse(w, http.StatusBadRequest, "ErrorInvalidUrlQueryFilter")
			return
		}
		letters, newest, more, known := inbox.After(number, page)
		if q.Get("$deltatoken") != "" && !known {
			refuse(w, http.StatusGone, "syncStateNotFound")
			return
		}
		list := []any{map[string]any{"id": "gone", "@removed": map[string]any{"reason": "deleted"}}}
		for _, l := range slices.Backward(letters) { // in no order that would help
			if !l.Received.Before(from) {
				list = append(list, map[string]any{"@odata.etag": "x", "id": l.ID,
					"receivedDateTime": l.Received.UTC().Format(time.RFC3339Nano)})
			}
		}
		link := func(name string, number int) string {
			return server.URL + r.URL.EscapedPath() + "?" + url.Values{name: {fmt.Sprint(number, " ", filter)}}.Encode()
		}
		answer := map[string]any{"@odata.context": server.URL + "/v1.0/$metadata", "value": list}
		if more {
			answer["@odata.nextLink"] = link("$skiptoken", letters[len(letters)-1].Number)
		} else {
			answer["@odata.deltaLink"] = link("$deltatoken", newest)
		}
		mailboxtest.Answer(w, http.StatusOK, answer)
	})
	handle("GET /v1.0/me/messages/{id}", func(w http.ResponseWriter, r *http.Request) {
		l, ok := inbox.Find(r.PathValue("id"))
		if !ok {
			refuse(w, http.StatusNotFound, "ErrorItemNotFound")
			return
		}
		mailboxtest.Answer(w, http.StatusOK, map[string]any{"id": l.ID, "receivedDateTime": l.Received.UTC().Format(time.RFC3339)})
	})
	handle("GET /v1.0/me/messages/{id}/$value", func(w http.ResponseWriter, r *http.Request) {
		l, ok := inbox.Find(r.PathValue("id"))
		if !ok {
			refuse(w, http.StatusNotFound, "ErrorItemNotFound")
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, l.Raw)
	})
	handle("PATCH /v1.0/me/messages/{id}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !gjson.GetBytes(body, "isRead").Bool() {
			refuse(w, http.StatusBadRequest, "ErrorInvalidRequest")
			return
		}
		if !inbox.Mark(r.PathValue("id")) {
			refuse(w, http.StatusNotFound, "ErrorItemNotFound")
			return
		}
		mailboxtest.Answer(w, http.StatusOK, map[string]any{"id": r.PathValue("id"), "isRead": true})
	})
	return server.URL, inbox
}
