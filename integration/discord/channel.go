package discord

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"github.com/bwmarrin/discordgo"
	"golang.org/x/sync/singleflight"

	"tandem/fault"
	"tandem/human"
	"tandem/trigger"
)

// Channel asks people in Discord and understands their clicks, forms and replies. It is a [human.Receiver] and a [human.Listener].
type Channel struct {
	client   *http.Client
	log      *slog.Logger
	patience time.Duration // how long Discord is kept waiting
	pace     pace
	// clicks keeps a repetition of a click that is still being worked on waiting for the same end.
	clicks singleflight.Group
	// relay hands messages and commands to the triggers that share a bot.
	relay *trigger.Relay
}

// NewChannel makes the channel. The client is one behind the guard; the log may be nil.
func NewChannel(client *http.Client, log *slog.Logger) *Channel {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Channel{client: client, log: log, patience: patience, pace: usualPace()}
}

// Name implements [human.Channel].
func (*Channel) Name() string { return Name }

// snowflake is how Discord writes ids. They are parts of addresses, so nothing else is taken for one.
var snowflake = regexp.MustCompile(`^[0-9]{1,20}$`)

// receipt is what is kept of a message.
type receipt struct {
	Channel string `json:"channel"`
	Message string `json:"message"`
	// Live says that it has components, which have to go when the question ends.
	Live bool `json:"live,omitempty"`
}

// Send posts a message. The first about a question has the components; later ones reply to it; the end takes them away and says
// who decided.
func (c *Channel) Send(ctx context.Context, m human.Message) (human.Receipt, error) {
	var settings struct {
		Server  json.RawMessage `json:"server_id"`
		Channel json.RawMessage `json:"channel_id"`
	}
	if len(m.Request.Settings) > 0 && json.Unmarshal(m.Request.Settings, &settings) != nil {
		return human.Receipt{}, fault.New(fault.InvalidConfig, "the settings of Discord cannot be read; server_id and channel_id are ids")
	}
	earlier, err := readReceipts(m.Earlier)
	if err != nil {
		return human.Receipt{}, err
	}
	s, release, err := open(ctx, c.client, m.Open, cmp.Or(m.Request.Credential, m.Credential))
	if err != nil {
		return human.Receipt{}, err
	}
	defer release()

	p := page{message: m}
	ended := m.Ends()
	if ended {
		if done, ok, err := s.close(ctx, &p, earlier); ok || err != nil {
			return done, err
		}
	}
	data := discordgo.MessageSend{AllowedMentions: &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}}}
	where := ""
	switch {
	case len(earlier) > 0:
		where = earlier[0].Channel
		maybe := false // the first may have been deleted
		data.Reference = &discordgo.MessageReference{MessageID: earlier[0].Message, ChannelID: where, FailIfNotExists: &maybe}
		p.short = true
	case m.To != "":
		where, err = s.direct(ctx, m.To)
	default:
		if where, err = readID(settings.Channel); err == nil {
			err = s.belongs(ctx, where, settings.Server)
		}
	}
	if err != nil {
		return human.Receipt{}, err
	}
	p.offer = !ended && !p.short
	p.write(&data)
	sent, err := s.post(ctx, where, m.ID, data)
	if err != nil {
		return human.Receipt{}, err
	}
	sent.Live = p.live
	return human.Receipt{Body: writeReceipt(sent), Threads: []string{threadOf(sent.Channel, sent.Message)}}, nil
}

// post sends a message. Discord takes those with the same nonce for one, for some minutes.
func (s *session) post(ctx context.Context, channel, id string, data discordgo.MessageSend) (receipt, error) {
	sum := sha256.Sum256([]byte(id))
	body := struct {
		discordgo.MessageSend
		Nonce   string `json:"nonce"`
		Enforce bool   `json:"enforce_nonce"`
	}{data, base64.RawURLEncoding.EncodeToString(sum[:18]), true}
	var sent struct {
		ID string `json:"id"`
	}
	err := s.call(ctx, "post the message", func(api *discordgo.Session, o discordgo.RequestOption) error {
		endpoint := discordgo.EndpointChannelMessages(channel)
		raw, err := api.RequestWithBucketID(http.MethodPost, endpoint, body, endpoint, o)
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, &sent)
	})
	if err == nil && !snowflake.MatchString(sent.ID) {
		err = fault.New(fault.NetworkError, "Discord did not say which message it made; check the base_url of the credential")
	}
	return receipt{Channel: channel, Message: sent.ID}, err
}

// close takes the components from the messages that have some. It is false if there is nothing left to change.
func (s *session) close(ctx context.Context, p *page, earlier []receipt) (human.Receipt, bool, error) {
	var data discordgo.MessageSend
	p.write(&data)
	none := []discordgo.MessageComponent{}
	var first *receipt
	for _, r := range earlier {
		if !r.Live {
			continue
		}
		err := s.call(ctx, "change the message", func(api *discordgo.Session, o discordgo.RequestOption) error {
			_, err := api.ChannelMessageEditComplex(&discordgo.MessageEdit{
				Channel: r.Channel, ID: r.Message, Content: &data.Content, Embeds: &data.Embeds, Components: &none,
				AllowedMentions: &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}},
			}, o)
			return err
		})
		switch {
		case gone(err):
			continue // nobody can press it any more
		case err != nil:
			return human.Receipt{}, false, err
		case first == nil:
			first = &receipt{Channel: r.Channel, Message: r.Message}
		}
	}
	if first == nil {
		return human.Receipt{}, false, nil
	}
	return human.Receipt{Body: writeReceipt(*first)}, true, nil
}

// direct opens the conversation with a person.
func (s *session) direct(ctx context.Context, user string) (string, error) {
	if !snowflake.MatchString(user) {
		return "", fault.Newf(fault.DeliveryFailed, "%q is not the id of a Discord user; it is a number", user)
	}
	channel := ""
	err := s.call(ctx, "open a conversation with "+user, func(api *discordgo.Session, o discordgo.RequestOption) error {
		made, err := api.UserChannelCreate(user, o)
		if err == nil {
			channel = made.ID
		}
		return err
	})
	if err == nil && !snowflake.MatchString(channel) {
		err = fault.New(fault.NetworkError, "Discord did not say where the conversation is; check the base_url of the credential")
	}
	return channel, err
}

// readID reads an id that was written as a text or, in YAML, as a number.
func readID(raw json.RawMessage) (string, error) {
	id := plainID(raw)
	if !snowflake.MatchString(id) {
		return "", fault.Newf(fault.InvalidConfig, "%q is not a channel of Discord; set channel_id to the number that Copy Channel ID gives", id).With("path", "configurations.channel_id")
	}
	return id, nil
}

// plainID is an id as it was written, as a text or as a number.
func plainID(raw json.RawMessage) string {
	var id string
	if json.Unmarshal(raw, &id) != nil {
		id = string(raw)
	}
	return id
}

// belongs refuses a channel that is not one of the server that the question is for: the number of a channel alone does not tell where its
// members are. Without a server any channel will do.
func (s *session) belongs(ctx context.Context, channel string, server json.RawMessage) error {
	id := plainID(server)
	if id == "" {
		return nil
	}
	var found struct {
		Server string `json:"guild_id"`
	}
	err := s.call(ctx, "find the channel "+channel, func(api *discordgo.Session, o discordgo.RequestOption) error {
		endpoint := discordgo.EndpointChannel(channel)
		raw, err := api.RequestWithBucketID(http.MethodGet, endpoint, nil, endpoint, o)
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, &found)
	})
	if err == nil && found.Server != id {
		err = fault.Newf(fault.InvalidConfig, "the channel %q is not on the server %q of Discord; set server_id to the number that Copy Server ID gives on the server of the channel", channel, id).With("path", "configurations.server_id")
	}
	return err
}

// threadOf is what replies to a message refer to.
func threadOf(channel, message string) string { return channel + ":" + message }

func readReceipts(list []json.RawMessage) ([]receipt, error) {
	return human.ReadReceipts(list, func(r receipt) bool { return snowflake.MatchString(r.Channel) && snowflake.MatchString(r.Message) })
}

func writeReceipt(r receipt) json.RawMessage {
	raw, _ := json.Marshal(r) // texts can always be written
	return raw
}
