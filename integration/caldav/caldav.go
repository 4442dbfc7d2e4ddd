// Package caldav is what Tandem knows of calendars that speak CalDAV, as Nextcloud, iCloud, Fastmail and Radicale do: their credential, and
// the kind that gives one to a model.
//
// iCalendar is read and written by go-ical, and recurrences are found by rrule-go. The client itself is thin and on the guarded client: it
// needs one report and three methods, and must send the conditions by which nobody's change is overwritten, which go-webdav's client does
// not; that library's server plays the service in tests. The program that puts extensions together imports the package; nothing else does.
package caldav

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/plug"
	"tandem/text"
)

// credentialType is the type of the credentials of calendar servers.
const credentialType = "caldav"

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name: "caldav",
		Credentials: []credential.Type{{Name: credentialType,
			Label: text.Beside("CalDAV calendar", "CalDAV 日历"), Fields: []credential.Field{
				credential.Address("url", "Calendar URL", "日历地址").Needed(), credential.Username().Needed(), credential.Password().Needed(),
			}, Check: checkCredential}},
		Kinds: []node.Kind{calendarTool(d.HTTP)},
	}
}

// account are the fields of a credential. The base_url takes the place of the url, as with every credential.
type account struct {
	address, username, login string
}

func read(c credential.Opened) (account, error) {
	f, err := c.Fields()
	if err != nil {
		return account{}, err
	}
	a := account{address: cmp.Or(f.Get("base_url").Str, f.Get("url").Str), username: f.Get("username").Str}
	if a.username == "" || f.Get("password").Str == "" {
		return a, fault.Newf(fault.CredentialInvalid, "credential %q lacks a username or a password; save it again", c.ID)
	}
	a.login = "Basic " + base64.StdEncoding.EncodeToString([]byte(a.username+":"+f.Get("password").Str))
	if u, err := url.Parse(a.address); err != nil || u.Host == "" || u.RawQuery != "" || u.Scheme != "http" && u.Scheme != "https" {
		return a, fault.Newf(fault.CredentialInvalid, "credential %q has a url that cannot be used; write it like https://host/calendar/", c.ID)
	}
	return a, nil
}

// checkCredential asks for the properties of the calendar itself, and for none of its entries.
func checkCredential(ctx context.Context, c credential.Opened, out credential.Outside) (string, error) {
	a, err := read(c)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, "PROPFIND", a.address, strings.NewReader(`<?xml version="1.0"?><propfind xmlns="DAV:"><prop><displayname/></prop></propfind>`))
	if err != nil {
		return "", fault.New(fault.CredentialInvalid, "the url in the credential cannot be used; write it like https://host/calendar/")
	}
	r.Header.Set("Depth", "0")
	r.Header.Set("Content-Type", "application/xml")
	r.Header.Set("Authorization", a.login)
	return "the calendar lets " + a.username + " in", credential.Ask(ctx, out.HTTP, "the calendar server", "user name or password", r, nil)
}
