package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"tandem/agent"
	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/console/table"
	"tandem/fault"
	"tandem/payload"
	"tandem/store"
)

// BrowseInbox lists questions and, when somebody is there, lets them answer one after the other.
func BrowseInbox(ctx context.Context, tty *Terminal, c *app.Connection, show *table.Listing, q client.InteractionQuery) error {
	var a *asker
	if !show.JSON {
		a = newAsker(tty.In, tty.Out, nil)
	}
	for {
		list, err := c.Interactions(ctx, q)
		if err != nil {
			return err
		}
		err = show.Show(tty.Out, list, func(w *tabwriter.Writer) {
			printInteractions(w, list, show.Output == "wide", !slices.Equal(q.Statuses, []string{string(store.InteractionPending)}),
				a != nil, time.Now())
		})
		if err != nil || a == nil || len(list.Interactions) == 0 {
			return err
		}
		err = pick(ctx, tty, c, a, list)
		switch {
		case errors.Is(err, app.ErrAsked): // they have left
			return nil
		case ctx.Err() != nil:
			return ErrParked
		case err != nil:
			return err
		}
	}
}

// pick lets somebody choose a question of a list and answer it. Leaving is [app.ErrAsked].
func pick(ctx context.Context, tty *Terminal, c *app.Connection, a *asker, list api.Interactions) error {
	a.typed.forget()
	line, err := a.line(ctx, "Answer which (a number or an id; Enter to leave)? ")
	if err != nil {
		return err
	}
	if line == "" {
		return app.ErrAsked
	}
	var found []api.Interaction
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(list.Interactions) {
		found = list.Interactions[n-1 : n]
	} else {
		found = beginning(list.Interactions, line)
	}
	if len(found) != 1 {
		return a.print(fmt.Sprintf("%s of the list is called %q.\n\n",
			map[bool]string{true: "None", false: "More than one"}[len(found) == 0], table.OneLine(line)))
	}
	d, err := c.Interaction(ctx, found[0].ID)
	if err != nil {
		return err
	}
	if !d.MayRespond {
		return a.print(fmt.Sprintf("\n%s\nYou cannot answer it: %s\n\n", table.OneLine(title(&d.Interaction)), table.OneLine(cmp.Or(d.WhyNot, "it is "+d.Status))))
	}
	err = respond(ctx, tty, c, a, &d.Interaction, &table.Listing{})
	// They think better of it, or somebody was faster, which was said.
	if err == nil || errors.Is(err, app.ErrAsked) || fault.CodeOf(err) == fault.Conflict {
		return a.print("\n")
	}
	return err
}

// respond asks for the answer to a question and hands it in.
func respond(ctx context.Context, tty *Terminal, c *app.Connection, a *asker, i *api.Interaction, show *table.Listing) error {
	var after api.Interaction
	err := a.ask(ctx, *i, func(answer json.RawMessage) (err error) {
		after, err = c.Respond(ctx, i.ID, api.RespondRequest{ResponseData: answer, ArgumentsHash: i.ArgumentsHash})
		return err
	})
	if err != nil {
		return err
	}
	return responded(tty, c, show, after)
}

// responded says what became of a question. Without a server nobody goes on with the execution, so it says who can.
func responded(tty *Terminal, c *app.Connection, show *table.Listing, i api.Interaction) error {
	if show.JSON {
		return table.JSON(tty.Out, i)
	}
	word := i.Status
	if i.Status == string(store.InteractionPending) {
		word = "taken; it waits for more answers"
	}
	if _, err := fmt.Fprintf(tty.Out, "%s: %s (%s)\n", i.ID, word, title(&i)); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if c.Local() && i.Status != string(store.InteractionPending) {
		run := "run"
		if _, task := agent.IDOf(i.WorkflowID); task {
			run = "agent run"
		}
		fmt.Fprintf(tty.Err, "it goes on with: tandem %s --resume %s, or with the next server on this data directory\n", run, i.ExecutionID)
	}
	return nil
}

// title is what a question is called, of whatever form it is.
func title(i *api.Interaction) string {
	q, err := newQuestion(*i, UserLanguage())
	if err != nil {
		return i.Purpose
	}
	return q.title()
}

// listedTitle is what a list says of a question: what it is called, and that it is asked in a fork.
func listedTitle(i *api.Interaction) string {
	var about struct {
		Fork *api.Fork `json:"fork"`
	}
	if json.Unmarshal(i.RequestData, &about) != nil || about.Fork == nil {
		return title(i)
	}
	text := "a fork"
	if n := len(about.Fork.Edits); n > 0 {
		text += ", " + strconv.Itoa(n) + " edited"
	}
	return title(i) + " (" + text + ")"
}

func printInteractions(w *tabwriter.Writer, list api.Interactions, wide, statuses, numbered bool, now time.Time) {
	if len(list.Interactions) == 0 {
		fmt.Fprintln(w, "Nothing waits for an answer here.")
		return
	}
	head := []string{"ID", "PRIORITY", "AGE", "LEFT", "FROM", "BY", "TITLE"}
	if numbered {
		head = append([]string{"#"}, head...)
	}
	if statuses || wide {
		head = append(head, "STATUS")
	}
	if wide {
		head = append(head, "TYPE", "PURPOSE", "CHANNEL", "EXECUTION", "APPROVERS")
	}
	table.Row(w, head...)
	size := shortest(list.Interactions)
	for n := range list.Interactions {
		i := &list.Interactions[n]
		id := i.ID
		if !wide {
			id = id[:min(size, len(id))]
		}
		cells := []string{id, strconv.Itoa(i.Priority), span(now.Sub(time.UnixMilli(i.CreatedAt))), timeLeft(i, now),
			from(i), i.UserID, listedTitle(i)}
		if numbered {
			cells = append([]string{strconv.Itoa(n + 1)}, cells...)
		}
		if statuses || wide {
			cells = append(cells, i.Status)
		}
		if wide {
			cells = append(cells, i.InteractionType, i.Purpose, i.ChannelType, i.ExecutionID, strings.Join(i.Approvers, " "))
		}
		table.Row(w, cells...)
	}
	table.More(w, len(list.Interactions), list.TotalCount)
}

// from is where a question comes from.
func from(i *api.Interaction) string { return cmp.Or(i.WorkflowName, i.WorkflowID) + "/" + i.NodeID }

// timeLeft is how long there is to answer; nothing when there is no limit or no hurry any more.
func timeLeft(i *api.Interaction, now time.Time) string {
	if i.TimeoutAt == 0 || i.Status != string(store.InteractionPending) {
		return ""
	}
	return span(max(0, time.UnixMilli(i.TimeoutAt).Sub(now)))
}

// span is a time that people wait, no finer than they care for.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	if d = max(0, d); d >= time.Minute {
		d = d.Round(time.Minute)
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d/day), int(d%day/time.Hour))
}

// shortID is how much of an id is shown at least.
const shortID = 8

// shortest is how many characters tell the ids of a list apart.
func shortest(list []api.Interaction) int {
	size := shortID
	for again := true; again; {
		again = false
		seen := map[string]bool{}
		for _, i := range list {
			key := i.ID[:min(size, len(i.ID))]
			if again = seen[key] && size < len(i.ID); again {
				size++
				break
			}
			seen[key] = true
		}
	}
	return size
}

// beginning are those whose id begins with a text.
func beginning(list []api.Interaction, id string) []api.Interaction {
	var found []api.Interaction
	for _, i := range list {
		if strings.HasPrefix(i.ID, strings.ToLower(id)) {
			found = append(found, i)
		}
	}
	return found
}

// The limits of looking for a question by the beginning of its id.
const (
	searchPage  = 500
	searchPages = 20
	wholeID     = 36
)

// FindInteraction finds a question by its id or the beginning of it: among those that wait, else among the others. It is read again
// whole.
func FindInteraction(ctx context.Context, c *app.Connection, id string) (api.InteractionDetail, error) {
	if len(id) >= wholeID {
		return c.Interaction(ctx, id)
	}
	for _, statuses := range [][]string{{string(store.InteractionPending)}, nil} {
		found, err := search(ctx, c, id, statuses)
		if err != nil {
			return api.InteractionDetail{}, err
		}
		switch {
		case len(found) == 1:
			return c.Interaction(ctx, found[0].ID)
		case len(found) > 1:
			lines := ""
			for _, i := range found[:min(len(found), 5)] {
				lines += fmt.Sprintf("\n  %s  %s", i.ID, title(&i))
			}
			return api.InteractionDetail{}, fault.Newf(fault.Conflict, "%d questions have an id that begins with %q; write more of it:%s", len(found), id, lines)
		}
	}
	return api.InteractionDetail{}, fault.Newf(fault.NotFound,
		"there is no question %q; \"tandem inbox --all --status all\" lists those there are", id)
}

func search(ctx context.Context, c *app.Connection, id string, statuses []string) ([]api.Interaction, error) {
	var found []api.Interaction
	for page := 1; page <= searchPages; page++ {
		list, err := c.Interactions(ctx, client.InteractionQuery{Statuses: statuses, Page: page, PageSize: searchPage})
		if err != nil {
			return nil, err
		}
		found = append(found, beginning(list.Interactions, id)...)
		if page*searchPage >= list.TotalCount {
			return found, nil
		}
	}
	if len(found) == 0 && statuses != nil {
		return nil, fault.Newf(fault.NotFound, "there are more questions than were looked through for %q; write the whole id", id)
	}
	return found, nil
}

// howItCame tells by which means a reply came, and on what ground it counts, in lines.
func howItCame(r *api.InteractionResponse) []string {
	who := cmp.Or(r.UserID, r.Address)
	var lines []string
	say := func(text string) { lines = append(lines, r.ID[:min(len(r.ID), shortID)]+": "+text) }
	if text := r.Means.Describe(r.UserID); text != "" {
		say("by " + who + ", with " + text)
	}
	switch r.Ground {
	case store.GroundOverride:
		say("an override by " + who + ": " + r.Reason)
	case store.GroundNobodyLeft:
		say("by " + who + " as an admin, since nobody who was asked is left to answer")
	case store.GroundReading:
		say("it is what " + r.ReadBy + " says the reply means: " + r.Reason)
	}
	if r.OverruledBy != "" && r.OverruleReason != "" {
		say("overruled by " + r.OverruledBy + ": " + r.OverruleReason)
	}
	return lines
}

// PrintInteraction shows a question with its replies and messages.
func PrintInteraction(w *tabwriter.Writer, d *api.InteractionDetail, now time.Time) {
	table.Row(w, "question", d.ID)
	table.Row(w, "status", d.Status)
	table.Row(w, "from", from(&d.Interaction)+" of execution "+d.ExecutionID)
	table.Row(w, "started by", byToken(d.UserID, d.TokenMadeBy))
	table.Row(w, "asked", table.Time(d.CreatedAt))
	table.Row(w, "asked of", strings.Join(d.Approvers, ", "))
	table.Row(w, "type", d.InteractionType+" ("+d.Purpose+"), priority "+strconv.Itoa(d.Priority)+", by "+d.ChannelType)
	if d.MayRespond {
		table.Row(w, "you may", "answer it")
	} else if d.Status == string(store.InteractionPending) {
		table.Row(w, "you may not", d.WhyNot)
	}
	if !empty(d.ResponseData) {
		table.Row(w, "answer", plain(d.ResponseData))
	}
	if o := d.Override; o != nil {
		table.Row(w, "override", fmt.Sprintf("%s has decided it in the place of those who were asked: %s (%s)", o.By, o.Reason, o.Means.Describe(o.By)))
	}
	for _, h := range d.Delegations {
		text := h.From + " to " + h.To
		if h.By != "" {
			text += ", by " + h.By + ", an admin"
		}
		table.Row(w, "delegated", strings.TrimSuffix(text+": "+h.Note, ": "))
	}
	fmt.Fprintln(w)
	q, err := newQuestion(d.Interaction, UserLanguage())
	if err != nil { // shown as it is
		fmt.Fprintln(w, table.OneLine(payload.JSON(d.RequestData)))
	} else {
		for _, l := range q.tellQuestion(now, 0) {
			fmt.Fprintln(w, l)
		}
		if d.MayRespond {
			for _, l := range q.wants() {
				fmt.Fprintln(w, l)
			}
			fmt.Fprintf(w, "answer with: tandem %s\n", q.how())
		}
	}
	if len(d.Responses) > 0 {
		fmt.Fprintln(w)
		table.Row(w, "RESPONSE", "RECEIVED", "BY", "CHANNEL", "COUNTS", "RELEVANCE", "SAID")
		var came []string
		for _, r := range d.Responses {
			came = append(came, howItCame(&r)...)
			counts := map[bool]string{true: "yes", false: "no"}[r.Accepted]
			if r.OverruledBy != "" {
				counts = "overruled by " + r.OverruledBy
			}
			relevance := r.Relevance
			if relevance != "" {
				relevance += fmt.Sprintf(" %.2f", r.Score)
			}
			table.Row(w, r.ID, table.Time(r.ReceivedAt), cmp.Or(r.UserID, r.Address), r.ChannelType, counts, relevance,
				cmp.Or(table.Cell(json.RawMessage(r.Raw)), table.Cell(r.ResponseData)))
		}
		for _, line := range came {
			fmt.Fprintln(w, table.OneLine(line))
		}
	}
	if len(d.Deliveries) > 0 {
		fmt.Fprintln(w)
		table.Row(w, "MESSAGE", "CHANNEL", "TO", "STATUS", "TRIES", "ERROR")
		for _, m := range d.Deliveries {
			table.Row(w, m.Kind, m.ChannelType, m.Recipient, m.Status, strconv.Itoa(m.Attempts), m.Error)
		}
	}
}
