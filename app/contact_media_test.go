package app

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/human"
	"tandem/plug"
)

// drum is a channel that an extension brings.
type drum struct{}

func (drum) Name() string { return "drum" }
func (drum) Traits() human.Traits {
	return human.Traits{Credentials: []string{"stick"}, ReadsWith: []string{"ear"}}
}
func (drum) Send(context.Context, human.Message) (human.Receipt, error) { return human.Receipt{}, nil }

// Whoever sets a contact channel up is told which media there are, and which credentials fit them, those of extensions like all others.
func TestContactChannels_Media(t *testing.T) {
	t.Parallel()
	x := openSiteAs(t, func(o *Options, _ string) {
		o.Extensions = []plug.Maker{madeOf(plug.Extension{Name: "drum", Channels: []human.Channel{drum{}}})}
	})
	told := want[api.ContactChannels](t, x.call(t, "viewer", "GET", "/contact-channels", nil), http.StatusOK)
	media := map[string]api.ContactMedium{}
	for _, m := range told.Media {
		media[m.ChannelType] = m
	}
	for _, one := range []api.ContactMedium{
		{ChannelType: "drum", Credentials: []string{"stick"}, ReadsWith: []string{"ear"}},
		{ChannelType: "email", Credentials: []string{"smtp", "google_oauth", "microsoft_oauth"}, ReadsWith: []string{"imap", "google_oauth", "microsoft_oauth"}},
		{ChannelType: "slack", Credentials: []string{"slack_bot"}},
		{ChannelType: "webhook", Credentials: []string{"webhook_secret"}, NeedsURL: true},
	} {
		if diff := cmp.Diff(one, media[one.ChannelType]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", one.ChannelType, diff)
		}
	}
}
