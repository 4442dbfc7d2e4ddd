package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/fault"
)

func newChat() *cobra.Command {
	var at connectFlags
	var f taskFlags
	cmd := &cobra.Command{
		Use:   "chat AGENT",
		Short: "Talk with an agent on the terminal",
		Long: `Chat gives an agent one goal after the other, a line each, in one conversation: it knows the last three rounds. The answers
appear while they are written, and what a task asks is asked in between.

  /new        begin a new conversation
  /auto       say whether tools of low risk are called without asking; /auto off and /auto on change it for this chat
  /help       list these
  /exit       leave; so does Ctrl-D

From a file or a pipe every line is a goal, too, or the answer to what the task before it asks; empty lines are passed over. Then nothing
but the answers goes to the standard output.

Interrupt it (Ctrl-C), and nothing new begins, what runs gets --grace to end, and the task is parked with how to resume it; once
more, and it ends at once. With a server the task goes on there.

Exit status: 0 at the end; 1, from a file or a pipe, when a task did not succeed; 130 when it was interrupted, or ended while a task
waits for a person.`,
		Example: "  tandem chat clerk\n  tandem chat clerk --conversation conv_abc\n  tandem chat clerk < questions.txt > answers.txt",
		Args:    one("agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := f.request()
			if err != nil {
				return err
			}
			return at.driving(cmd, false, func(ctx context.Context, c *app.Connection) error {
				agent, err := c.Agent(ctx, args[0])
				if err != nil {
					return err
				}
				return newChatting(cmd, c, &at, agent, request).run(ctx)
			})
		},
	}
	at.addAllow(cmd)
	at.addGrace(cmd)
	at.add(cmd)
	f.add(cmd)
	return cmd
}

// chatting is a conversation on the terminal. It belongs to one goroutine.
type chatting struct {
	cmd   *cobra.Command
	c     *app.Connection
	at    *connectFlags
	agent api.Agent
	// request is what every task is given; its conversation is the present one.
	request api.TaskRequest
	asker   *asker
	// present says that somebody sits there and types.
	present bool
	// failed says that a task did not succeed, parked that the last one waits for a person.
	failed, parked bool
}

func newChatting(cmd *cobra.Command, c *app.Connection, at *connectFlags, agent api.Agent, request api.TaskRequest) *chatting {
	t := &chatting{cmd: cmd, c: c, at: at, agent: agent, request: request}
	in := cmd.InOrStdin()
	if file, ok := in.(interface{ Fd() uintptr }); ok {
		t.present = term.IsTerminal(file.Fd())
	}
	screen := cmd.OutOrStdout()
	if s, _ := terminal(screen); s == nil || !t.present {
		screen = cmd.ErrOrStderr()
	}
	t.asker = &asker{out: screen, typed: newTyped()}
	t.asker.typed.ahead = !t.present
	go t.asker.typed.read(in) // it lives as long as the process: nothing can call a read of a terminal back
	return t
}

// chatCommand is how a line begins that is no goal. A goal may begin with a slash, too: /etc/hosts is none of these. read-only
var chatCommand = regexp.MustCompile(`^/[a-z]+$`)

func (t *chatting) run(ctx context.Context) error {
	if t.present {
		if err := t.tell(fmt.Sprintf("%s, planned by %s. /help tells what else there is.\n", cmp.Or(t.agent.Name, t.agent.ID), t.agent.LLMProfile)); err != nil {
			return err
		}
	}
	for {
		line, err := t.line(ctx)
		switch {
		case errors.Is(err, app.ErrAsked):
			return t.leave()
		case ctx.Err() != nil:
			return errors.Join(errParked, t.tell("\n"))
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
		line, err := t.asker.typed.next(ctx)
		return strings.TrimSpace(line), err
	}
	return t.asker.line(ctx, prompt)
}

// task gives the agent a goal. What goes wrong with it is told, and does not end the conversation; only an interrupt does.
func (t *chatting) task(ctx context.Context, goal string) error {
	show := newTaskShow(t.cmd, false)
	t.asker.follow = show.steps()
	defer func() { t.asker.follow = nil }()
	request := t.request
	request.Question = goal
	conversation, err := followTask(ctx, t.cmd, t.c, app.Task{Agent: t.agent.ID, Request: request, Server: t.at.server, Dir: t.at.dir, Ask: t.asker.ask}, show)
	t.request.ConversationID = cmp.Or(conversation, t.request.ConversationID)
	t.parked = errors.Is(err, errParked)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err
	case t.parked:
		return nil
	}
	t.failed = true
	if errors.Is(err, errReported) {
		return nil
	}
	if broken := fault.CodeOf(err); broken == fault.Unauthorized || broken == fault.NotFound { // it will not be better with the next line
		return err
	}
	_, werr := fmt.Fprintf(t.cmd.ErrOrStderr(), "%v\n", failed(t.cmd, err))
	return werr
}

// command does what a line with a slash says; over means to leave.
func (t *chatting) command(ctx context.Context, words []string) (over bool, err error) {
	switch words[0] {
	case "/exit", "/quit":
		return true, nil
	case "/new":
		t.request.ConversationID = ""
		return false, t.tell("A new conversation begins.\n")
	case "/auto":
		return false, t.auto(ctx, words[1:])
	case "/help":
		return false, t.tell("/new begins a new conversation, /auto [on|off] says whether tools of low risk are called without asking, /exit leaves. Anything else is a goal.\n")
	}
	return false, t.tell(fmt.Sprintf("There is no %s; /help lists what there is.\n", words[0]))
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
		return t.tell("Write /auto, /auto on or /auto off.\n")
	}
	if t.request.AutoExecute != nil {
		return t.tell("You are asked before every call.\n")
	}
	err := t.c.CheckAuto(ctx, t.agent)
	if told := fault.From(err); err != nil && told.Code == fault.Forbidden {
		return t.tell("You are asked before every call: " + told.Message + ".\n")
	}
	if err != nil {
		return err
	}
	return t.tell("Calls of these risks are made without asking: " + autoText(t.agent) + ".\n")
}

// leave ends the conversation.
func (t *chatting) leave() error {
	if t.present && t.request.ConversationID != "" {
		where := "--data " + t.at.dir
		if t.at.server != "" {
			where = "--server " + t.at.server
		}
		if err := t.tell(fmt.Sprintf("Go on with: tandem chat %s --conversation %s %s\n", t.agent.ID, t.request.ConversationID, where)); err != nil {
			return err
		}
	}
	switch {
	case t.parked:
		return errParked
	case t.failed && !t.present:
		return errReported
	}
	return nil
}

func (t *chatting) tell(text string) error {
	if _, err := io.WriteString(t.asker.out, text); err != nil {
		return fmt.Errorf("write to the chat: %w", err)
	}
	return nil
}
