package discord

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"tandem/fault"
	"tandem/human"
)

// pace is how often Discord is asked for replies.
type pace struct {
	round   time.Duration // between two looks at the same channel
	call    time.Duration // between two calls of an account
	refresh time.Duration // between two looks at which channels are of interest
}

func usualPace() pace {
	return pace{round: 5 * time.Second, call: time.Second, refresh: 15 * time.Second}
}

const pageSize = 100

// Listen looks for messages in the channels that wait for replies or that triggers are for. It begins where the oldest question that still
// waits was put, and where the triggers have come to, so that nothing is missed after a restart; what was seen before is recognised by its
// id.
func (c *Channel) Listen(ctx context.Context, a human.Account, handle human.Handle) error {
	if a.Receipts == nil {
		return fault.New(fault.Unsupported, "nobody knows where replies in Discord are to be looked for")
	}
	l := listening{channel: c, account: a, handle: handle, seen: map[string]string{}, places: map[string]place{}}
	for {
		began := time.Now()
		if err := l.round(ctx); ctx.Err() != nil {
			return nil
		} else if wait, slow := after(err); slow {
			if !l.wait(ctx, max(wait, c.pace.round)) {
				return nil
			}
			continue
		} else if err != nil {
			return err
		}
		if !l.wait(ctx, c.pace.round-time.Since(began)) {
			return nil
		}
	}
}

// listening is an account that is listened to.
type listening struct {
	channel *Channel
	account human.Account
	handle  human.Handle
	// seen is the last message that is done with, by channel.
	seen map[string]string
	// watched are the triggers that share the account, places what is known of the channels that they are for, self the user id of the bot
	// once it is known.
	watched   []watched
	places    map[string]place
	self      string
	refreshed time.Time
	called    time.Time
	blind     bool // the warning that texts cannot be read was given
}

// wait is false when the context has ended.
func (l *listening) wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// round looks at every channel once.
func (l *listening) round(ctx context.Context) error {
	if l.refreshed.IsZero() || time.Since(l.refreshed) >= l.channel.pace.refresh {
		if err := l.refresh(ctx); err != nil {
			return err
		}
	}
	if len(l.seen) == 0 {
		return nil
	}
	s, release, err := open(ctx, l.channel.client, l.account.Open, l.account.Credential)
	if err != nil {
		return err
	}
	defer release()
	for _, channel := range slices.Sorted(maps.Keys(l.seen)) {
		err := l.readMessages(ctx, s, channel)
		if gone(err) {
			// The others go on; this one is tried again when it is found to be of interest again.
			l.channel.log.Warn("replies in a channel of Discord cannot be read", "workspace", l.account.Workspace, "credential",
				l.account.Credential, "channel", channel, "error", err)
			delete(l.seen, channel)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refresh finds the channels that wait for replies.
func (l *listening) refresh(ctx context.Context) error {
	list, err := l.account.Receipts(ctx)
	if err != nil {
		return err
	}
	receipts, err := readReceipts(list)
	if err != nil {
		return err
	}
	first := map[string]string{}
	for _, r := range receipts {
		if old, ok := first[r.Channel]; !ok || older(r.Message, old) {
			first[r.Channel] = r.Message
		}
	}
	if err := l.watch(ctx, first); err != nil {
		return err
	}
	for channel := range first {
		if seen, ok := l.seen[channel]; ok {
			first[channel] = seen
		}
	}
	l.seen, l.refreshed = first, time.Now()
	return nil
}

// older compares the ids of messages, which grow with time.
func older(a, b string) bool {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) < 0
}

// readMessages takes what is new in a channel. A message is done with when it was recorded.
func (l *listening) readMessages(ctx context.Context, s *session, channel string) error {
	for {
		if !l.wait(ctx, l.channel.pace.call-time.Since(l.called)) {
			return ctx.Err()
		}
		l.called = time.Now()
		page, err := s.messages(ctx, channel, l.seen[channel])
		if err != nil {
			return err
		}
		full := len(page) == pageSize
		page = slices.DeleteFunc(page, func(m *written) bool {
			return m == nil || !snowflake.MatchString(m.ID) || !older(l.seen[channel], m.ID)
		})
		slices.SortFunc(page, func(a, b *written) int {
			return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID))
		})
		answered := map[string]bool{} // what a bot has replied to; after a restart it is not told again
		for _, m := range page {
			if m.Author != nil && m.Author.Bot && m.MessageReference != nil {
				answered[m.MessageReference.MessageID] = true
			}
		}
		for _, m := range page {
			ours, err := l.takeReply(ctx, s, channel, &m.Message, answered[m.ID])
			if err == nil {
				err = l.relay(ctx, s, channel, m, ours)
			}
			if err != nil {
				return err
			}
			l.seen[channel] = m.ID
		}
		if len(page) > 0 {
			if err := l.reach(ctx, channel); err != nil {
				return err
			}
		}
		if !full || len(page) == 0 {
			return nil
		}
	}
}

// noticeBlindness warns once if a message has nothing in it: its text is kept from the bot then.
func (l *listening) noticeBlindness(m *discordgo.Message) {
	if l.blind || m.Content != "" || len(m.Attachments)+len(m.StickerItems)+len(m.Embeds) > 0 {
		return
	}
	l.blind = true
	l.channel.log.Warn("messages in Discord come without their text; allow the bot the message content intent", "workspace", l.account.Workspace, "credential", l.account.Credential)
}

// beginning is the mention that Discord puts before a reply.
var beginning = regexp.MustCompile(`^\s*<@!?[0-9]+>\s*`)

// takeReply hands a message in if a person replied with it to one of a bot. Ours says that it is about a question.
func (l *listening) takeReply(ctx context.Context, s *session, channel string, m *discordgo.Message, answered bool) (ours bool, err error) {
	if m.Author == nil || m.Author.Bot || m.WebhookID != "" || m.Type != discordgo.MessageTypeReply || m.MessageReference == nil {
		return false, nil
	}
	if to := m.ReferencedMessage; to != nil && (to.Author == nil || !to.Author.Bot) {
		return false, nil
	}
	if m.Content == "" {
		l.noticeBlindness(m)
		return false, nil
	}
	o, err := l.handle(ctx, human.Reply{
		Account: l.account.Account, Threads: []string{threadOf(channel, m.MessageReference.MessageID)}, From: m.Author.ID,
		Name:     cmp.Or(m.Author.GlobalName, m.Author.Username),
		Verified: true, Text: beginning.ReplaceAllString(m.Content, ""), Dedup: "message:" + m.ID,
	})
	if err != nil {
		return false, err
	}
	ours = o.Interaction.ID != ""
	// What was not understood is asked back in a message of its own; a thread about something else is none of our business.
	if answered || !ours || !o.Accepted && o.Err == nil {
		return ours, nil
	}
	said := safe(wordsIn(o.Request.Language).Became(o), contentMax)
	maybe := false
	_, err = s.post(ctx, channel, "reply to "+m.ID, discordgo.MessageSend{
		Content: said, AllowedMentions: &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}},
		Reference: &discordgo.MessageReference{MessageID: m.ID, ChannelID: channel, FailIfNotExists: &maybe},
	})
	if err != nil && ctx.Err() == nil { // it was recorded, so it is done with
		l.channel.log.Warn("a person cannot be told what became of their reply", "workspace", l.account.Workspace, "credential", l.account.Credential, "error", err)
	}
	return ours, nil
}
