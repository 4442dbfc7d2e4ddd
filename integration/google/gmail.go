package google

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/mailbox"
	"tandem/outbound"
)

const (
	gmailBase = "https://gmail.googleapis.com"
	// ofUser is where the mailbox of the account is.
	ofUser = "/gmail/v1/users/me"
	// pageSize is how many changes or messages are asked for at once.
	pageSize = "100"
	// maxPages bounds how far a mailbox is gone through by time.
	maxPages = 100
)

// gmail are the mailboxes of Gmail, by its API.
func gmail(client *outbound.Client) mailbox.Service {
	return mailbox.Service{Name: "gmail_api", Credential: credentialType, Scope: "https://www.googleapis.com/auth/gmail.", Open: func(c credential.Opened) (mailbox.Box, error) {
		account, err := mailbox.NewAccount(client, "Gmail", gmailBase, c)
		if err != nil {
			return nil, err
		}
		return &gmailBox{account}, nil
	}}
}

// gmailBox is a mailbox of Gmail. A folder is a label of it; the id of one is the address of the account and the id of the label. A
// position is a number of the history, in which all changes of the mailbox stand.
type gmailBox struct{ account *mailbox.Account }

func (b *gmailBox) get(ctx context.Context, path string, query url.Values, into any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return b.account.Ask(ctx, mailbox.Call{Method: http.MethodGet, Path: ofUser + path}, into)
}

type gmailProfile struct {
	Address string `json:"emailAddress"`
	History string `json:"historyId"`
}

// Locate implements [mailbox.Box].
func (b *gmailBox) Locate(ctx context.Context, folder string) (string, error) {
	var profile gmailProfile
	if err := b.get(ctx, "/profile", nil, &profile); err != nil {
		return "", err
	}
	var list struct {
		Labels []struct{ ID, Name string } `json:"labels"`
	}
	if err := b.get(ctx, "/labels", nil, &list); err != nil {
		return "", err
	}
	var names []string
	for _, l := range list.Labels {
		if strings.EqualFold(l.Name, folder) || l.ID == folder {
			return strings.ToLower(profile.Address) + " " + l.ID, nil
		}
		names = append(names, l.Name)
	}
	slices.Sort(names)
	return "", fault.Newf(fault.NotFound, "Gmail has no label %q; there are: %s", folder, strings.Join(names, ", "))
}

// labelOf is the label of a folder.
func labelOf(folder string) string {
	_, label, _ := strings.Cut(folder, " ")
	return label
}

// Since implements [mailbox.Box]. The position is taken first: what comes meanwhile is found twice instead of never.
func (b *gmailBox) Since(ctx context.Context, folder string, from time.Time) (news mailbox.News, err error) {
	var profile gmailProfile
	if err := b.get(ctx, "/profile", nil, &profile); err != nil {
		return news, err
	}
	news.Position = profile.History
	query := url.Values{"labelIds": {labelOf(folder)}, "q": {"after:" + strconv.FormatInt(from.Unix(), 10)}, "maxResults": {pageSize}}
	for range maxPages {
		var page struct {
			Messages []struct{ ID string } `json:"messages"`
			Next     string                `json:"nextPageToken"`
		}
		if err := b.get(ctx, "/messages", query, &page); err != nil {
			return news, err
		}
		for _, m := range page.Messages {
			news.Messages = append(news.Messages, m.ID)
		}
		if page.Next == "" {
			break
		}
		query.Set("pageToken", page.Next)
	}
	slices.Reverse(news.Messages) // Gmail lists the newest first
	return news, nil
}

// News implements [mailbox.Box]. A message has come when it was put into the mailbox with the label, or got the label later.
func (b *gmailBox) News(ctx context.Context, folder, position string) (news mailbox.News, err error) {
	type change struct {
		Message struct {
			ID     string   `json:"id"`
			Labels []string `json:"labelIds"`
		} `json:"message"`
		Labels []string `json:"labelIds"`
	}
	var page struct {
		History []struct {
			ID     string   `json:"id"`
			Added  []change `json:"messagesAdded"`
			Labels []change `json:"labelsAdded"`
		} `json:"history"`
		Next    string `json:"nextPageToken"`
		Current string `json:"historyId"`
	}
	label := labelOf(folder)
	err = b.get(ctx, "/history", url.Values{"startHistoryId": {position}, "labelId": {label},
		"historyTypes": {"messageAdded", "labelAdded"}, "maxResults": {pageSize}}, &page)
	if mailbox.Answered(err, http.StatusNotFound) {
		return news, mailbox.ErrLost // Gmail keeps the history for a week or so
	}
	if err != nil {
		return news, err
	}
	news.Position = page.Current
	for _, record := range page.History {
		for _, c := range record.Added {
			// The labels need not be there: it was asked for this one.
			if len(c.Message.Labels) == 0 || slices.Contains(c.Message.Labels, label) {
				news.Messages = append(news.Messages, c.Message.ID)
			}
		}
		for _, c := range record.Labels {
			if slices.Contains(c.Labels, label) {
				news.Messages = append(news.Messages, c.Message.ID)
			}
		}
		if page.Next != "" { // the next page begins behind the last record of this one
			news.Position, news.More = record.ID, true
		}
	}
	return news, nil
}

// Message implements [mailbox.Box].
func (b *gmailBox) Message(ctx context.Context, id string, most int64) (mailbox.Message, error) {
	var m struct {
		Raw  string `json:"raw"`
		Date string `json:"internalDate"`
	}
	call := mailbox.Call{Method: http.MethodGet, Path: ofUser + "/messages/" + url.PathEscape(id) + "?format=raw", Most: most/3*4 + 64<<10}
	if err := b.account.Ask(ctx, call, &m); err != nil {
		return mailbox.Message{}, err
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(m.Raw, "="))
	if err != nil {
		return mailbox.Message{}, fault.New(fault.RemoteError, "Gmail sent a message that cannot be read").WithCause(err)
	}
	message := mailbox.Message{Raw: raw}
	if ms, err := strconv.ParseInt(m.Date, 10, 64); err == nil {
		message.Received = time.UnixMilli(ms)
	}
	return message, nil
}

// MarkSeen implements [mailbox.Box].
func (b *gmailBox) MarkSeen(ctx context.Context, id string) error {
	_, err := b.account.Do(ctx, mailbox.Call{Method: http.MethodPost, Path: ofUser + "/messages/" + url.PathEscape(id) + "/modify",
		Body: map[string]any{"removeLabelIds": []string{"UNREAD"}}})
	return err
}
