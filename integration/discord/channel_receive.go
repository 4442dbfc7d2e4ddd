package discord

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/bwmarrin/discordgo"

	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
)

const (
	// patience leaves something of the 3 seconds after which Discord gives up.
	patience = 2 * time.Second
	// workTime bounds what goes on after Discord was answered.
	workTime = 30 * time.Second
	// freshness is how old a request may be. Discord signs the time but does not say how long it is good.
	freshness = 5 * time.Minute
)

// Receive takes what Discord posts: clicks, menus and forms, and commands, which are for triggers.
func (c *Channel) Receive(w http.ResponseWriter, r *http.Request, a human.Account, handle human.Handle) error {
	body, err := human.ReadCall(w, r, human.MaxCall)
	if err != nil {
		return err
	}
	s, release, err := open(r.Context(), c.client, a.Open, a.Credential)
	if err != nil {
		return err
	}
	defer release()
	if err := s.verify(r.Header, body, time.Now()); err != nil {
		return err
	}
	var p pressed
	if err := json.Unmarshal(body, &p); err != nil {
		return fault.New(fault.Invalid, "the interaction cannot be read").WithCause(err)
	}
	// The work goes on when Discord has hung up, and ends with this call.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), workTime)
	defer cancel()
	v := visit{channel: c, session: s, account: a, handle: handle, w: w, pressed: p}
	switch discordgo.InteractionType(p.Type) {
	case discordgo.InteractionPing:
		return v.reply(discordgo.InteractionResponse{Type: discordgo.InteractionResponsePong})
	case discordgo.InteractionApplicationCommand:
		return v.command(ctx, body)
	case discordgo.InteractionMessageComponent, discordgo.InteractionModalSubmit:
		t, ok := readTouch(p.Data.CustomID)
		if !ok || p.user().ID == "" {
			return fault.New(fault.Invalid, "the component brings nothing back that can be read")
		}
		if t.do == doForm {
			return v.openForm(ctx, t)
		}
		return v.answer(ctx, t)
	}
	return fault.Newf(fault.Unsupported, "an interaction of type %d is nothing that this bot offers", p.Type)
}

// verify checks the signature. A credential without a key lets nobody in.
func (s *session) verify(header http.Header, body []byte, now time.Time) error {
	if s.key == nil {
		return fault.New(fault.Unauthorized, "the credential has no public_key, so nothing can be believed; save it with the one that the application's page shows")
	}
	signature, err := hex.DecodeString(header.Get("X-Signature-Ed25519"))
	stamp := header.Get("X-Signature-Timestamp")
	at, timeErr := strconv.ParseInt(stamp, 10, 64)
	if err != nil || timeErr != nil || len(signature) != ed25519.SignatureSize ||
		!ed25519.Verify(s.key, append([]byte(stamp), body...), signature) {
		return fault.New(fault.Unauthorized, "the request is not signed by Discord")
	}
	if now.Sub(time.Unix(at, 0)).Abs() > freshness {
		return fault.New(fault.Unauthorized, "the request is too old")
	}
	return nil
}

// pressed is what Discord says about a click or a form.
type pressed struct {
	ID        string `json:"id"`
	AppID     string `json:"application_id"`
	Type      int    `json:"type"`
	Token     string `json:"token"`
	ChannelID string `json:"channel_id"`
	Message   struct {
		ID string `json:"id"`
	} `json:"message"`
	// In a server it is a member that presses, in a conversation a user.
	Member struct {
		User user `json:"user"`
	} `json:"member"`
	User user `json:"user"`
	Data struct {
		CustomID   string   `json:"custom_id"`
		Values     []string `json:"values"`
		Components []struct {
			Components []struct {
				CustomID string `json:"custom_id"`
				Value    string `json:"value"`
			} `json:"components"`
		} `json:"components"`
	} `json:"data"`
}

type user struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	Global   string `json:"global_name"`
	Bot      bool   `json:"bot"`
}

func (p pressed) user() user {
	if p.Member.User.ID != "" {
		return p.Member.User
	}
	return p.User
}

// visit is one request of Discord.
type visit struct {
	channel *Channel
	session *session
	account human.Account
	handle  human.Handle
	w       http.ResponseWriter
	pressed pressed
}

func (v *visit) warn(text string, err error) {
	v.channel.log.Warn(text, "workspace", v.account.Workspace, "credential", v.account.Credential, "error", err)
}

// reply writes the answer and sends it off.
func (v *visit) reply(answer discordgo.InteractionResponse) error {
	raw, err := json.Marshal(answer)
	if err != nil {
		return fault.New(fault.Internal, "the answer to Discord cannot be written").WithCause(err)
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Content-Length", strconv.Itoa(len(raw))) // without it the answer would end with the visit
	_, err = v.w.Write(raw)
	if err == nil {
		err = http.NewResponseController(v.w).Flush()
	}
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		v.warn("Discord cannot be answered", err) // it has hung up; what it brought is worked on all the same
	}
	return nil
}

// whisper answers with a text that only the person sees.
func (v *visit) whisper(text string) error {
	return v.reply(discordgo.InteractionResponse{Type: discordgo.InteractionResponseChannelMessageWithSource,
		Data: &discordgo.InteractionResponseData{
			Content: safe(text, contentMax), Flags: discordgo.MessageFlagsEphemeral,
			AllowedMentions: &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}},
		}})
}

// from begins a reply of the person who pressed.
func (v *visit) from(t touch) human.Reply {
	u := v.pressed.user()
	r := human.Reply{
		Account: v.account.Account, Interaction: t.interaction, ArgumentsHash: t.hash, From: u.ID,
		Name: cmp.Or(u.Global, u.Username), Verified: !u.Bot,
		Dedup: "interaction:" + v.pressed.ID,
	}
	if v.pressed.Message.ID != "" {
		r.Threads = []string{threadOf(v.pressed.ChannelID, v.pressed.Message.ID)}
	}
	return r
}

// openForm shows the form of a question to somebody who may answer it.
func (v *visit) openForm(ctx context.Context, t touch) error {
	ctx, cancel := context.WithTimeout(ctx, v.channel.patience)
	defer cancel()
	look := v.from(t)
	look.Look, look.Dedup = true, ""
	o, err := v.handle(ctx, look)
	w := wordsIn(o.Request.Language)
	switch {
	case err != nil:
		v.warn("the question of a form cannot be read", err)
		return v.whisper(w.TryAgain)
	case o.Err != nil || o.Ended:
		return v.whisper(w.Became(o))
	}
	data, ok := modal(o.Interaction, o.Request, t)
	if !ok {
		return v.whisper(form.Instead(false).In(o.Request.Language))
	}
	return v.reply(discordgo.InteractionResponse{Type: discordgo.InteractionResponseModal, Data: data})
}

// outcome is what became of an answer.
type outcome struct {
	human.Reaction
	err error
}

// answer takes a click, a menu or a form. If that takes long, the person hears of it later.
func (v *visit) answer(ctx context.Context, t touch) error {
	key := v.account.Workspace + "/" + v.account.Credential + "/" + v.pressed.ID
	results := v.channel.clicks.DoChan(key, func() (any, error) {
		reaction, err := v.takeAnswer(ctx, t)
		return outcome{reaction, err}, nil
	})
	timer := time.NewTimer(v.channel.patience)
	defer timer.Stop()
	select {
	case r := <-results:
		return v.whisper(v.say(r.Val.(outcome)))
	case <-timer.C:
	}
	v.w.Header().Set("Connection", "close") // the next request must not wait for this one's end on the same connection
	err := v.reply(discordgo.InteractionResponse{Type: discordgo.InteractionResponseDeferredChannelMessageWithSource,
		Data: &discordgo.InteractionResponseData{Flags: discordgo.MessageFlagsEphemeral}})
	if err != nil {
		return err
	}
	r := <-results
	said := safe(v.say(r.Val.(outcome)), contentMax)
	err = v.session.call(ctx, "tell a person", func(api *discordgo.Session, o discordgo.RequestOption) error {
		_, err := api.InteractionResponseEdit(&discordgo.Interaction{AppID: v.pressed.AppID, Token: v.pressed.Token},
			&discordgo.WebhookEdit{Content: &said}, o)
		return err
	})
	if err != nil {
		v.warn("a person cannot be told what became of their answer", err)
	}
	return nil
}

func (v *visit) say(o outcome) string {
	w := wordsIn(o.Request.Language)
	if o.err != nil {
		v.warn("an answer in Discord was not recorded", o.err)
		return w.TryAgain
	}
	return w.Became(o.Reaction)
}

// takeAnswer reads an answer by its question, since it is made of numbers, and hands it in.
func (v *visit) takeAnswer(ctx context.Context, t touch) (human.Reaction, error) {
	var read func(f *form.Form) (form.Values, form.Problems)
	switch t.do {
	case doSubmit:
		typed := map[string]string{}
		for _, row := range v.pressed.Data.Components {
			for _, c := range row.Components {
				typed[c.CustomID] = c.Value
			}
		}
		read = func(f *form.Form) (form.Values, form.Problems) { return readInputs(f, typed) }
	case doChoose:
		read = byNumbers(strconv.Itoa(t.n))
	case doSelect:
		read = byNumbers(v.pressed.Data.Values...)
	default:
		read = byNumbers()
	}
	reaction, _, err := v.handle.Fill(ctx, v.from(t), read)
	return reaction, err
}

// byNumbers reads the choices of a question by their numbers.
func byNumbers(numbers ...string) func(f *form.Form) (form.Values, form.Problems) {
	return func(f *form.Form) (form.Values, form.Problems) {
		gone := form.Problems{{Text: form.Gone()}}
		decision, _ := f.Decision()
		var chosen []int
		for _, number := range numbers {
			n, err := strconv.Atoi(number)
			if err != nil || decision == nil || n < 0 || n >= len(decision.Choices) {
				return nil, gone
			}
			chosen = append(chosen, n)
		}
		if slices.Sort(chosen); len(chosen) == 0 {
			return nil, gone
		}
		var values []string
		for _, n := range slices.Compact(chosen) {
			values = append(values, decision.Choices[n].Value)
		}
		return human.Choose(values...)(f)
	}
}
