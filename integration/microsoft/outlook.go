package microsoft

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/mailbox"
	"tandem/outbound"
)

const (
	graphBase = "https://graph.microsoft.com"
	// ofUser is where the mailbox of the account is.
	ofUser = "/v1.0/me"
	// maxPages bounds how far a mailbox is gone through by time.
	maxPages = 200
)

// outlook are the mailboxes of Microsoft 365 and Outlook, by Microsoft Graph.
func outlook(client *outbound.Client) mailbox.Service {
	return mailbox.Service{Name: "outlook_api", Credential: credentialType, Scope: "https://graph.microsoft.com/", Open: func(c credential.Opened) (mailbox.Box, error) {
		account, err := mailbox.NewAccount(client, "Microsoft Graph", graphBase, c)
		if err != nil {
			return nil, err
		}
		return &outlookBox{account}, nil
	}}
}

// outlookBox is a mailbox of Outlook. A position is an address that Graph has named: where the next page of a round of changes is, or the
// next round.
type outlookBox struct{ account *mailbox.Account }

// prefer asks for ids that stay the same when a message is moved, and for pages that are not large.
func prefer() http.Header {
	return http.Header{"Prefer": {`IdType="ImmutableId", odata.maxpagesize=50`}}
}

func (b *outlookBox) get(ctx context.Context, path string, into any) error {
	return b.account.Ask(ctx, mailbox.Call{Method: http.MethodGet, Path: path, Header: prefer()}, into)
}

// Locate implements [mailbox.Box]. A folder in another one is named by its path, as in Projects/Invoices.
func (b *outlookBox) Locate(ctx context.Context, folder string) (string, error) {
	if strings.EqualFold(folder, "INBOX") {
		var inbox struct {
			ID string `json:"id"`
		}
		err := b.get(ctx, ofUser+"/mailFolders/inbox?$select=id", &inbox)
		return inbox.ID, err
	}
	within, id := ofUser+"/mailFolders", ""
	for name := range strings.SplitSeq(folder, "/") {
		var found struct {
			Value []struct {
				ID string `json:"id"`
			} `json:"value"`
		}
		query := url.Values{"$select": {"id"}, "$filter": {"displayName eq '" + strings.ReplaceAll(name, "'", "''") + "'"}}
		if err := b.get(ctx, within+"?"+query.Encode(), &found); err != nil {
			return "", err
		}
		if len(found.Value) == 0 {
			return "", fault.Newf(fault.NotFound, "Outlook has no folder %q in %q; write the names of its folders with slashes, as in Projects/Invoices", name, folder)
		}
		id = found.Value[0].ID
		within = ofUser + "/mailFolders/" + url.PathEscape(id) + "/childFolders"
	}
	return id, nil
}

// Since implements [mailbox.Box]: it goes through a first round of changes.
func (b *outlookBox) Since(ctx context.Context, folder string, from time.Time) (mailbox.News, error) {
	query := url.Values{"changeType": {"created"}, "$select": {"id,receivedDateTime"},
		"$filter": {"receivedDateTime ge " + from.UTC().Format(time.RFC3339)}}
	news := mailbox.News{Position: ofUser + "/mailFolders/" + url.PathEscape(folder) + "/messages/delta?" + query.Encode(), More: true}
	for range maxPages {
		page, err := b.News(ctx, folder, news.Position)
		if err != nil {
			return news, err
		}
		news.Messages, news.Position, news.More = append(news.Messages, page.Messages...), page.Position, page.More
		if !page.More {
			break
		}
	}
	return news, nil
}

// News implements [mailbox.Box].
func (b *outlookBox) News(ctx context.Context, _, position string) (news mailbox.News, err error) {
	type message struct {
		ID       string    `json:"id"`
		Received time.Time `json:"receivedDateTime"`
		Removed  *struct{} `json:"@removed"`
	}
	var page struct {
		Value []message `json:"value"`
		Next  string    `json:"@odata.nextLink"`
		Delta string    `json:"@odata.deltaLink"`
	}
	err = b.get(ctx, position, &page)
	if mailbox.Answered(err, http.StatusGone) {
		return news, mailbox.ErrLost
	}
	if err != nil {
		return news, err
	}
	slices.SortStableFunc(page.Value, func(x, y message) int { return x.Received.Compare(y.Received) }) // Graph tells them in no order
	for _, m := range page.Value {
		if m.Removed == nil {
			news.Messages = append(news.Messages, m.ID)
		}
	}
	if news.Position, news.More = page.Delta, page.Delta == ""; news.More {
		news.Position = page.Next
	}
	if news.Position == "" {
		return news, fault.New(fault.RemoteError, "Microsoft Graph did not say where its changes go on")
	}
	return news, nil
}

// Message implements [mailbox.Box].
func (b *outlookBox) Message(ctx context.Context, id string, most int64) (mailbox.Message, error) {
	path := ofUser + "/messages/" + url.PathEscape(id)
	var m struct {
		Received time.Time `json:"receivedDateTime"`
	}
	if err := b.get(ctx, path+"?$select=receivedDateTime", &m); err != nil {
		return mailbox.Message{}, err
	}
	raw, err := b.account.Do(ctx, mailbox.Call{Method: http.MethodGet, Path: path + "/$value", Header: prefer(), Most: most})
	return mailbox.Message{Raw: raw, Received: m.Received}, err
}

// MarkSeen implements [mailbox.Box].
func (b *outlookBox) MarkSeen(ctx context.Context, id string) error {
	_, err := b.account.Do(ctx, mailbox.Call{Method: http.MethodPatch, Path: ofUser + "/messages/" + url.PathEscape(id),
		Header: prefer(), Body: map[string]any{"isRead": true}})
	return err
}
