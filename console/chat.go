package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/charmbracelet/x/term"

	"tandem/api"
	"tandem/app"
	"tandem/console/tree"
	"tandem/fault"
)

// Place is what a connection was made to: the address of a server or, without one, a data directory. It is named to people who read how
// to go on.
type Place struct {
	Server, Dir string
	// Again is that of [app.Run].
	Again string
}

// Chat gives an agent one goal after the other, as they are typed, in one conversation. Request is what every task is given.
func Chat(ctx context.Context, tty *Terminal, c *app.Connection, at Place, agent api.Agent, request api.TaskRequest) error {
	return newChatting(tty, c, at, agent, request).run(ctx)
}

// chatting is a conversation on the terminal. It belongs to one goroutine.
type chatting struct {
	tty   *Terminal
	c     *app.Connection
	place Place
	agent api.Agent
	// request is what every task is given; its conversation is the present one.
	request api.TaskRequest
	asker   *asker
	// present says that somebody sits there and types.
	present bool
	// failed says that a task did not succeed, parked that the last one waits for a person.
	failed, parked bool
}

func newChatting(tty *Terminal, c *app.Connection, at Place, agent api.Agent, request api.TaskRequest) *chatting {
	t := &chatting{tty: tty, c: c, place: at, agent: agent, request: request}
	in := tty.In
	if file, ok := in.(interface{ Fd() uintptr }); ok {
		t.present = term.IsTerminal(file.Fd())
	}
	screen := tty.Out
	if !tree.IsTerminal(screen) || !t.present {
		screen = tty.Err
	}
	t.asker = &asker{out: screen, typed: newTyped()}
	t.asker.typed.ahead = !t.present
	go t.asker.typed.readLines(in) // it lives as long as the process: nothing can call a read of a terminal back
	return t
}

// chatCommand is the form of a command. Any other line is a goal, also one that begins with a path such as /etc/hosts. read-only
var chatCommand = regexp.MustCompile(`^/[a-z]+$`)

func (t *chatting) run(ctx context.Context) error {
	if t.present {
		if err := t.say(fmt.Sprintf("%s, planned by %s. /help tells what else there is.\n", cmp.Or(t.agent.Name, t.agent.ID), t.agent.LLMProfile)); err != nil {
			return err
		}
	}
	for {
		line, err := t.line(ctx)
		switch {
		case errors.Is(err, app.ErrAsked):
			return t.leave()
		case ctx.Err() != nil:
			return errors.Join(ErrParked, t.say("\n"))
		case err != nil:
			return err
		}
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case chatCommand.MatchString(words[0]):
			over, err := t.command(ctx, words)
			if err != nil || over {
				return errors.Join(err, t.leave())
			}
			continue
		}
		if err := t.task(ctx, line); err != nil {
			return err
		}
	}
}

func (t *chatting) line(ctx context.Context) (string, error) {
	prompt := ""
	if t.present {
		prompt = "\n> "
	}
	if prompt == "" {
		line, err := t.asker.typed.nextLine(ctx)
		return strings.TrimSpace(line), err
	}
	return t.asker.line(ctx, prompt)
}

// task gives the agent a goal. What goes wrong with it is printed, and does not end the conversation; only an interrupt does.
func (t *chatting) task(ctx context.Context, goal string) error {
	show := tree.NewTaskShow(t.tty.Out, t.tty.Err, false)
	t.asker.follow = show.Steps()
	defer func() { t.asker.follow = nil }()
	request := t.request
	request.Question = goal
	conversation, err := followTask(ctx, t.tty, t.c, app.Task{Agent: t.agent.ID, Request: request, Server: t.place.Server,
		Dir: t.place.Dir, Ask: t.asker.ask}, show)
	t.request.ConversationID = cmp.Or(conversation, t.request.ConversationID)
	t.parked = errors.Is(err, ErrParked)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err
	case t.parked:
		return nil
	}
	t.failed = true
	if errors.Is(err, ErrReported) {
		return nil
	}
	if broken := fault.CodeOf(err); broken == fault.Unauthorized || broken == fault.NotFound { // it will not be better with the next line
		return err
	}
	_, werr := fmt.Fprintf(t.tty.Err, "%v\n", t.tty.Failed(err))
	return werr
}

// command does what a line with a slash says; over means to leave.
func (t *chatting) command(ctx context.Context, words []string) (over bool, err error) {
	switch words[0] {
	case "/exit", "/quit":
		return true, nil
	case "/new":
		t.request.ConversationID = ""
		return false, t.say("A new conversation begins.\n")
	case "/auto":
		return false, t.auto(ctx, words[1:])
	case "/help":
		return false, t.say("/new begins a new conversation, /auto [on|off] says whether tools of low risk are called without asking, /exit leaves. Anything else is a goal.\n")
	}
	return false, t.say(fmt.Sprintf("There is no %s; /help lists what there is.\n", words[0]))
}

// auto says, and changes for this chat, whether tools of low risk are called without asking.
func (t *chatting) auto(ctx context.Context, words []string) error {
	switch strings.Join(words, " ") {
	case "":
	case "on":
		t.request.AutoExecute = nil
	case "off":
		off := false
		t.request.AutoExecute = &off
	default:
		return t.say("Write /auto, /auto on or /auto off.\n")
	}
	if t.request.AutoExecute != nil {
		return t.say("You are asked before every call.\n")
	}
	err := t.c.CheckAuto(ctx, t.agent)
	if told := fault.From(err); err != nil && told.Code == fault.Forbidden {
		return t.say("You are asked before every call: " + told.Message + ".\n")
	}
	if err != nil {
		return err
	}
	return t.say("Calls of these risks are made without asking: " + autoText(t.agent) + ".\n")
}

// leave ends the conversation.
func (t *chatting) leave() error {
	if t.present && t.request.ConversationID != "" {
		where := "--data " + t.place.Dir + t.place.Again
		if t.place.Server != "" {
			where = "--server " + t.place.Server
		}
		if err := t.say(fmt.Sprintf("Go on with: tandem chat %s --conversation %s %s\n", t.agent.ID,
			t.request.ConversationID, where)); err != nil {
			return err
		}
	}
	switch {
	case t.parked:
		return ErrParked
	case t.failed && !t.present:
		return ErrReported
	}
	return nil
}

func (t *chatting) say(text string) error {
	if _, err := io.WriteString(t.asker.out, text); err != nil {
		return fmt.Errorf("write to the chat: %w", err)
	}
	return nil
}
