package app

import (
	"encoding/json"
	"log/slog"
	"slices"
	"testing"

	"tandem/human"
	"tandem/outbound"
	"tandem/plug"
)

// The desk is told of each channel which credentials it sends with, how its addresses are written, and where the settings of a question
// send it to: whether a link that answers in somebody's name may stand there depends on it.
func TestChannels_Traits(t *testing.T) {
	t.Parallel()
	client := outbound.New(outbound.Options{})
	t.Cleanup(client.Close)
	set, err := gather(plug.Deps{HTTP: client, Log: slog.New(slog.DiscardHandler)}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	media := human.MediaOf(set.Channels...)
	want := map[string]struct {
		credentials []string
		// normal are addresses and how they are kept; places are settings and where they lead. None: the channel does not say.
		normal                       map[string]string
		places                       map[string]human.Place
		several, takes, needs, speak bool
	}{
		"email": {credentials: []string{"smtp", "google_oauth", "microsoft_oauth"}},
		"slack": {credentials: []string{"slack_bot"}, places: map[string]human.Place{
			`{"channel":"#team"}`: {Named: true, Address: "#team"}, `{"channel":"C1"}`: {Named: true, Address: "C1"}, `{"channel":"@U1"}`: {Named: true, Private: true, Address: "U1"},
			`{"channel":"U1"}`: {Named: true, Private: true, Address: "U1"}, `{"channel":"D1"}`: {Named: true, Private: true, Address: "D1"}, `{}`: {}, `[]`: {}, ``: {},
		}},
		"discord": {credentials: []string{"discord_bot"}, places: map[string]human.Place{`{"channel_id":"7"}`: {Named: true}, `{}`: {}, `[]`: {}, ``: {}}},
		"telegram": {credentials: []string{"telegram_bot"}, normal: map[string]string{"@Ann": "@ann", "12": "12", "Ann": "Ann"}, places: map[string]human.Place{
			`{"chat_id":12}`: {Named: true, Private: true, Address: "12"}, `{"chat_id":"12"}`: {Named: true, Private: true, Address: "12"}, `{"chat_id":-100}`: {Named: true, Address: "-100"},
			`{"chat_id":"@news"}`: {Named: true, Address: "@news"}, `{"chat_id":null}`: {Address: "null"}, `{}`: {}, ``: {},
		}},
		"teams": {credentials: []string{"teams_bot"}, several: true, takes: true, places: map[string]human.Place{
			`{"channel_id":"c"}`: {Named: true}, `{"user":"u"}`: {Named: true, Private: true, Address: "u"}, `{"webhook_url":"https://a.example"}`: {Named: true, Private: true}, `{}`: {Private: true}, ``: {Private: true},
		}},
		"webhook": {credentials: []string{"webhook_secret"}, takes: true, needs: true, speak: true, places: map[string]human.Place{
			`{"webhook_url":"https://a.example"}`: {Named: true, Private: true}, `{}`: {Private: true}, ``: {Private: true},
		}},
	}
	for name, w := range want {
		traits, there := media[name]
		if !there || !slices.Equal(traits.Credentials, w.credentials) || traits.SeveralIDs != w.several || traits.TakesURL != w.takes || traits.NeedsURL != w.needs || traits.SpeaksForOthers != w.speak {
			t.Errorf("%s: %t, %+v", name, there, traits)
		}
		if (traits.Normal != nil) != (w.normal != nil) || (traits.Place != nil) != (w.places != nil) {
			t.Errorf("%s says how addresses are written: %t, and where settings lead: %t", name, traits.Normal != nil, traits.Place != nil)
			continue
		}
		for address, kept := range w.normal {
			if got := traits.Normal(address); got != kept {
				t.Errorf("%s: %q is kept as %q, want %q", name, address, got, kept)
			}
		}
		for settings, place := range w.places {
			if got := traits.Place(json.RawMessage(settings)); got != place {
				t.Errorf("%s: %s leads to %+v, want %+v", name, settings, got, place)
			}
		}
	}
	for _, name := range media.Names() {
		if _, known := want[name]; !known {
			t.Errorf("the traits of the channel %q are not in this table", name)
		}
	}
}
