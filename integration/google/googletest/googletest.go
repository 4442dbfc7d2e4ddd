// Package googletest is a stand-in for the Gmail API: what Tandem calls of it, with its paths, pages, errors and forms. Tests import it,
// and nothing else does.
package googletest

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/mailbox/mailboxtest"
)

// label is the id of the inbox.
const label = "INBOX"

// page is how many changes an answer has at most, whatever is asked for.
const page = 50

// Gmail starts a stand-in, which ends with the test. Ids of messages may hold any letters.
func Gmail(t testing.TB) (address string, inbox *mailboxtest.Inbox) {
	t.Helper()
	inbox = mailboxtest.NewInbox()
	mux := http.NewServeMux()
	handle := func(pattern string, do func(w http.ResponseWriter, r *http.Request)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if inbox.Admit(w, r) {
				do(w, r)
			}
		})
	}
	missing := func(w http.ResponseWriter) {
		mailboxtest.Answer(w, http.StatusNotFound, map[string]any{"error": map[string]any{"code": 404,
			"message": "Requested entity was not found.", "status": "NOT_FOUND"}})
	}
	handle("GET /gmail/v1/users/me/profile", func(w http.ResponseWriter, _ *http.Request) {
		_, newest, _, _ := inbox.After(0, page)
		mailboxtest.Answer(w, http.StatusOK, map[string]any{"emailAddress": "Box@example.com", "messagesTotal": 1, "threadsTotal": 1,
			"historyId": strconv.Itoa(newest)})
	})
	handle("GET /gmail/v1/users/me/labels", func(w http.ResponseWriter, _ *http.Request) {
		mailboxtest.Answer(w, http.StatusOK, map[string]any{"labels": []any{map[string]any{"id": label, "name": "INBOX", "type": "system"},
			map[string]any{"id": "Label_7", "name": "Invoices", "type": "user"}}})
	})
	handle("GET /gmail/v1/users/me/messages", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		after, err := strconv.ParseInt(strings.TrimPrefix(q.Get("q"), "after:"), 10, 64)
		if err != nil || q.Get("labelIds") != label {
			mailboxtest.Answer(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"message": "bad request"}})
			return
		}
		letters, _, _, _ := inbox.After(0, 1<<20)
		list := []any{}
		for _, l := range slices.Backward(letters) { // the newest first
			if l.Received.Unix() >= after {
				list = append(list, map[string]any{"id": l.ID, "threadId": l.ID})
			}
		}
		from, _ := strconv.Atoi(q.Get("pageToken"))
		answer := map[string]any{"messages": list[from:min(len(list), from+page)], "resultSizeEstimate": len(list)}
		if from+page < len(list) {
			answer["nextPageToken"] = strconv.Itoa(from + page)
		}
		mailboxtest.Answer(w, http.StatusOK, answer)
	})
	handle("GET /gmail/v1/users/me/history", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		from, err := strconv.Atoi(q.Get("startHistoryId"))
		if err != nil || q.Get("labelId") != label || !slices.Contains(q["historyTypes"], "messageAdded") {
			mailboxtest.Answer(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"message": "bad request"}})
			return
		}
		letters, newest, more, known := inbox.After(from, page)
		if !known {
			missing(w)
			return
		}
		list := []any{}
		for n, l := range letters {
			message := map[string]any{"id": l.ID, "threadId": l.ID, "labelIds": []string{"UNREAD", label}}
			switch n % 3 {
			case 0:
				list = append(list, map[string]any{"id": strconv.Itoa(l.Number), "messages": []any{message},
					"messagesAdded": []any{map[string]any{"message": message}}})
			case 1: // its labels are not always told
				list = append(list, map[string]any{"id": strconv.Itoa(l.Number),
					"messagesAdded": []any{map[string]any{"message": map[string]any{"id": l.ID, "threadId": l.ID}}}})
			case 2: // it was somewhere else before; another one got another label
				list = append(list, map[string]any{"id": strconv.Itoa(l.Number), "labelsAdded": []any{
					map[string]any{"message": message, "labelIds": []string{label}},
					map[string]any{"message": map[string]any{"id": "other"}, "labelIds": []string{"STARRED"}}}})
			}
		}
		answer := map[string]any{"history": list, "historyId": strconv.Itoa(newest)}
		if more {
			answer["nextPageToken"] = fmt.Sprint("page", letters[len(letters)-1].Number)
		}
		mailboxtest.Answer(w, http.StatusOK, answer)
	})
	handle("GET /gmail/v1/users/me/messages/{id}", func(w http.ResponseWriter, r *http.Request) {
		l, ok := inbox.Find(r.PathValue("id"))
		if !ok || r.URL.Query().Get("format") != "raw" {
			missing(w)
			return
		}
		mailboxtest.Answer(w, http.StatusOK, map[string]any{"id": l.ID, "threadId": l.ID,
			"internalDate": strconv.FormatInt(l.Received.UnixMilli(), 10), "raw": base64.URLEncoding.EncodeToString([]byte(l.Raw))})
	})
	handle("POST /gmail/v1/users/me/messages/{id}/modify", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || gjson.GetBytes(body, "removeLabelIds.0").Str != "UNREAD" {
			mailboxtest.Answer(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"message": "bad request"}})
			return
		}
		if !inbox.Mark(r.PathValue("id")) {
			missing(w)
			return
		}
		mailboxtest.Answer(w, http.StatusOK, map[string]any{"id": r.PathValue("id"), "labelIds": []string{label}})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, inbox
}
