package caldav

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/emersion/go-ical"

	"tandem/builtin/rest"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
)

// client is a calendar on a server.
type client struct {
	ctx     context.Context
	http    *outbound.Client
	address *url.URL // of the calendar, with a slash at its end
	secret  *outbound.Secret
}

// open opens the credential that a node names, and the calendar: that of the credential, or another one of the same server.
func open(ctx context.Context, http *outbound.Client, call *node.Call, calendar string) (*client, error) {
	opened, err := rest.Credential(ctx, call, "a calendar", credentialType)
	if err != nil {
		return nil, err
	}
	a, err := read(opened)
	if err != nil {
		return nil, err
	}
	home, err := url.Parse(strings.TrimRight(a.address, "/") + "/")
	if err != nil {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q has a url that cannot be used", opened.ID)
	}
	c := &client{ctx: ctx, http: http, address: home, secret: &outbound.Secret{Header: map[string][]string{"Authorization": {a.login}}}}
	if calendar == "" {
		return c, nil
	}
	named, err := url.Parse(strings.TrimRight(calendar, "/") + "/")
	if err != nil || named.RawQuery != "" || named.Fragment != "" || named.User != nil {
		return nil, fault.Newf(fault.InvalidConfig, "calendar_url %q is not an address", calendar).With("path",
			"configurations.calendar_url")
	}
	if c.address = home.ResolveReference(named); c.address.Host != home.Host || c.address.Scheme != home.Scheme {
		return nil, fault.Newf(fault.InvalidConfig, "calendar_url %q is not on the server of the credential, which is %s; its password is for nobody else", calendar, home.Host).
			With("path", "configurations.calendar_url")
	}
	return c, nil
}

// item is where an entry of the calendar is. Its name is that of one in the calendar itself.
func (c *client) item(name string) (*url.URL, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\?#") {
		return nil, fault.Newf(fault.InvalidInput, "event_id %q is not that of an event", name).With("path", "event_id")
	}
	return c.address.Parse("./" + url.PathEscape(name))
}

// do makes a call; a status that is not good is an error that says what the server can have taken.
func (c *client) do(method string, target *url.URL, header http.Header, body []byte) (*outbound.Response, []byte, error) {
	response, err := c.http.Do(c.ctx, outbound.Request{Method: method, URL: target, Header: header, Body: body, Secret: c.secret,
		Repeatable: true, Redirects: outbound.NoFollow})
	if err != nil {
		return nil, nil, err
	}
	answer, err := response.ReadAll()
	if bad := response.Problem(time.Now()); bad != nil {
		return nil, nil, bad
	}
	if err != nil {
		return nil, nil, err
	}
	if response.Status >= 300 {
		return nil, nil, &outbound.Error{Fate: outbound.Answered, Fault: fault.Newf(fault.RemoteRejected, "host %q answered %d, which leads elsewhere; check the url of the credential", target.Host, response.Status)}
	}
	return response, answer, nil
}

// entry is an entry of the calendar as it is stored.
type entry struct {
	name, etag string
	calendar   *ical.Calendar
}

// strange is the answer of something that is not a calendar server.
func (c *client) strange(why error) error {
	return &outbound.Error{Fate: outbound.Unknown, Fault: fault.Newf(fault.RemoteError, "host %q answers in a way that is not that of a calendar server; check the url of the credential", c.address.Host).WithCause(why)}
}

// multistatus is the answer to a report.
type multistatus struct {
	XMLName   xml.Name `xml:"DAV: multistatus"`
	Responses []struct {
		Href  string `xml:"DAV: href"`
		Stats []struct {
			Status string `xml:"DAV: status"`
			Prop   struct {
				ETag string `xml:"DAV: getetag"`
				Data string `xml:"urn:ietf:params:xml:ns:caldav calendar-data"`
			} `xml:"DAV: prop"`
		} `xml:"DAV: propstat"`
	} `xml:"DAV: response"`
}

// wire is how times are written in reports.
const wire = "20060102T150405Z"

// query finds the entries with an event in a range of time, those that recur included.
func (c *client) query(from, to time.Time) ([]entry, error) {
	body := fmt.Sprintf(`<?xml version="1.0" encoding="utf-8"?><C:calendar-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:prop><D:getetag/><C:calendar-data/></D:prop>`+
		`<C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT"><C:time-range start="%s" end="%s"/></C:comp-filter></C:comp-filter></C:filter></C:calendar-query>`,
		from.UTC().Format(wire), to.UTC().Format(wire))
	_, answer, err := c.do("REPORT", c.address, http.Header{"Depth": {"1"}, "Content-Type": {"application/xml; charset=utf-8"}},
		[]byte(body))
	if err != nil {
		return nil, err
	}
	var found multistatus
	if err := xml.Unmarshal(answer, &found); err != nil {
		return nil, c.strange(err)
	}
	var list []entry
	for _, r := range found.Responses {
		for _, s := range r.Stats {
			if !strings.Contains(s.Status, " 200") || s.Prop.Data == "" {
				continue
			}
			read, err := ical.NewDecoder(strings.NewReader(s.Prop.Data)).Decode()
			if err != nil {
				return nil, c.strange(err)
			}
			list = append(list, entry{nameOf(r.Href), s.Prop.ETag, read})
		}
	}
	return list, nil
}

// nameOf is the name of an entry.
func nameOf(href string) string {
	u, err := url.Parse(href)
	if err != nil {
		return path.Base(href)
	}
	return path.Base(u.Path)
}

func (c *client) get(name string) (entry, error) {
	target, err := c.item(name)
	if err != nil {
		return entry{}, err
	}
	response, answer, err := c.do(http.MethodGet, target, http.Header{"Accept": {ical.MIMEType}}, nil)
	if err != nil {
		return entry{}, err
	}
	read, err := ical.NewDecoder(bytes.NewReader(answer)).Decode()
	if err != nil {
		return entry{}, c.strange(err)
	}
	return entry{name, response.Header.Get("Etag"), read}, nil
}

// put stores an entry: a new one if it has no etag, else in the place of the one that has it.
func (c *client) put(e entry) (etag string, err error) {
	target, err := c.item(e.name)
	if err != nil {
		return "", err
	}
	var body bytes.Buffer
	if err := ical.NewEncoder(&body).Encode(e.calendar); err != nil {
		return "", fault.New(fault.InvalidInput, "the event cannot be written").WithCause(err)
	}
	header := http.Header{"Content-Type": {ical.MIMEType + "; charset=utf-8"}}
	if e.etag == "" {
		header.Set("If-None-Match", "*")
	} else {
		header.Set("If-Match", e.etag)
	}
	response, _, err := c.do(http.MethodPut, target, header, body.Bytes())
	if err != nil {
		return "", err
	}
	return response.Header.Get("Etag"), nil
}

func (c *client) remove(name, etag string) error {
	target, err := c.item(name)
	if err != nil {
		return err
	}
	header := http.Header{}
	if etag != "" {
		header.Set("If-Match", etag)
	}
	_, _, err = c.do(http.MethodDelete, target, header, nil)
	return err
}
