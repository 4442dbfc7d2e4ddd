package human

import (
	"encoding/json"
	"net/mail"
	"regexp"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
	"tandem/text"
)

// The kinds of approvers.
const (
	seatUser = "user:"
	seatMail = "mail:"
	seatRole = "role:"
)

// channelAddress is an address of a channel. read-only
var channelAddress = regexp.MustCompile(`^([a-z][a-z0-9_]*):(.+)$`)

// normalApprover writes an approver in its one form.
func (m Media) normalApprover(text string) (string, error) {
	text = strings.TrimSpace(text)
	kind, rest, named := strings.Cut(text, ":")
	kind, rest = strings.ToLower(strings.TrimSpace(kind)), strings.TrimSpace(rest)
	switch {
	case text == "" || named && rest == "":
		return "", wrongConfig("approvers", "%q names nobody", text)
	case strings.EqualFold(text, Anyone):
		return Anyone, nil
	case strings.EqualFold(text, Visitor):
		return Visitor, nil
	case named && kind == "user":
		return seatUser + rest, nil
	case named && kind == "role":
		role := strings.ToLower(rest)
		if !identity.Role(role).Known() {
			return "", wrongConfig("approvers", "%q is not a role; there are admin, editor, operator, approver and viewer", rest)
		}
		return seatRole + role, nil
	case named && (kind == "mail" || kind == Email || kind == "mailto"):
		return mailSeat(rest)
	case named && channelAddress.MatchString(kind+":"+rest):
		if normal := m[kind].Normal; normal != nil {
			rest = normal(rest)
		}
		return kind + ":" + rest, nil
	case identity.Role(strings.ToLower(text)).Known():
		return seatRole + strings.ToLower(text), nil
	case strings.Contains(text, "@"):
		return mailSeat(text)
	}
	return seatUser + text, nil
}

// NamedPerson reads the person whom a program names as having answered: the id of a user, or a mail address.
func NamedPerson(text string) (user, mail string, err error) {
	seat, err := Media(nil).normalApprover(text)
	if err == nil {
		if mail, ok := strings.CutPrefix(seat, seatMail); ok {
			return "", mail, nil
		}
		if user, ok := strings.CutPrefix(seat, seatUser); ok {
			return user, "", nil
		}
		if user = strings.TrimSpace(text); identity.Role(strings.ToLower(user)).Known() {
			return user, "", nil // one person answers, so it is a user whose id is the name of a role
		}
	}
	return "", "", fault.Newf(fault.Invalid, "%q is neither a mail address nor a user id", text)
}

func mailSeat(text string) (string, error) {
	a, err := mail.ParseAddress(text)
	if err != nil {
		return "", wrongConfig("approvers", "%q is not a mail address", text)
	}
	return seatMail + strings.ToLower(a.Address), nil
}

// addressSeat is the address that a reply of a channel comes from, written like an approver.
func addressSeat(channel, address string) string {
	address = strings.TrimSpace(address)
	if address == "" {
		return ""
	}
	if channel == Email {
		if seat, err := mailSeat(address); err == nil {
			return seat
		}
		return seatMail + strings.ToLower(address)
	}
	return channel + ":" + address
}

// Seats are all the ways in which the approvers of a question can name a user: by id, mail address, role, and the addresses of
// their settings.
func (m Media) Seats(u identity.User) []string {
	seats := append([]string{seatUser + u.ID}, m.Addresses(u)...)
	for _, r := range u.Roles {
		seats = append(seats, seatRole+string(r))
	}
	return seats
}

// Addresses returns the addresses at which a user is reached and answers, written like approvers: the mail address and those of the
// settings.
func (m Media) Addresses(u identity.User) []string {
	var list []string
	add := func(seat string) {
		if !slices.Contains(list, seat) {
			list = append(list, seat)
		}
	}
	if seat, err := mailSeat(u.Email); err == nil {
		add(seat)
	}
	var settings struct {
		Addresses []string `json:"addresses"`
	}
	if len(u.Settings) > 0 && json.Unmarshal(u.Settings, &settings) == nil {
		for _, a := range settings.Addresses {
			// Only addresses: settings cannot make somebody another user or give a role.
			if seat, err := m.normalApprover(a); err == nil && isAddress(seat) {
				add(seat)
			}
		}
	}
	return list
}

// Address reads an address of a person in a channel, such as slack:U1 or a mail address.
func (m Media) Address(text string) (string, error) {
	seat, err := m.normalApprover(text)
	if err != nil || !isAddress(seat) {
		return "", fault.Newf(fault.InvalidInput, "%q is not an address; write it as channel:address, such as slack:U024BE7LH or telegram:@ann, or as a mail address", text)
	}
	return seat, nil
}

// Absent says why no one can answer for an approver as an author has written it: a user who does not exist or is disabled, a role
// that no enabled user has, or, for a question that is asked in the app only, an address that no enabled user has. It is empty
// where somebody can, where only the reply shows who it is (any other address), and for roles where there are no users besides the
// one who works without a server.
func Absent(approver string, inApp bool, users []identity.User) text.Text {
	users = slices.DeleteFunc(slices.Clone(users), func(u identity.User) bool { return u.ID == identity.LocalUser })
	seat, err := Media(nil).normalApprover(approver) // whether it is a user or a role does not depend on media
	has := func(u identity.User) bool { return !u.Disabled && slices.Contains(Media(nil).Addresses(u), seat) }
	switch {
	// Mistakes in how it is written are reported elsewhere.
	case err != nil, seat == Anyone, seat == Visitor, seat == seatUser+identity.LocalUser,
		isAddress(seat) && (!inApp || slices.ContainsFunc(users, has)):
		return text.Text{}
	case isAddress(seat):
		return text.Of("the question is asked in the app only, and no enabled user has this address; give it to a user, or ask where it is read with channel_type")
	}
	if role, ok := strings.CutPrefix(seat, seatRole); ok {
		if len(users) == 0 ||
			slices.ContainsFunc(users, func(u identity.User) bool { return !u.Disabled && slices.Contains(u.Roles, identity.Role(role)) }) {
			return text.Text{}
		}
		return text.Of("no enabled user has the role %q; give it to somebody who is to answer", role)
	}
	id := strings.TrimPrefix(seat, seatUser)
	ids := make([]string, 0, len(users))
	for _, u := range users {
		if u.ID == id && u.Disabled {
			return text.Of("user %q is disabled; enable them, or name somebody else", id)
		}
		if u.ID == id {
			return text.Text{}
		}
		ids = append(ids, u.ID)
	}
	hint := text.Of("; create them, or name somebody else")
	if near := fault.Nearest(id, ids); near != "" {
		hint = text.Of("; did you mean %q?", near)
	}
	return text.Of("user %q is not in this workspace%s", id, hint)
}

// isAddress says whether a seat is an address, and not a user, a role, the visitor or everybody.
func isAddress(seat string) bool {
	return seat != Anyone && seat != Visitor && !strings.HasPrefix(seat, seatUser) && !strings.HasPrefix(seat, seatRole)
}

// approversOf lists who may answer a question.
func (m Media) approversOf(q Question, r Request) ([]string, error) {
	var list []string
	add := func(seat string) {
		if !slices.Contains(list, seat) {
			list = append(list, seat)
		}
	}
	for _, text := range r.Approvers {
		seat, err := m.normalApprover(text)
		if err != nil {
			return nil, err
		}
		add(seat)
	}
	starter := ""
	if q.User != "" && q.User != identity.System("").User {
		starter = seatUser + q.User
	}
	if len(list) == 0 {
		var err error
		if list, err = defaultApprovers(q.Purpose, starter, r); err != nil {
			return nil, err
		}
	}
	if r.Access == "link" || r.Access == "public" {
		add(Anyone)
	}
	others := slices.DeleteFunc(slices.Clone(list), func(seat string) bool {
		user, ok := strings.CutPrefix(seat, seatUser)
		return r.ExcludeRequester && ok && (seat == starter || slices.Contains(q.Requesters, user))
	})
	if len(others) == 0 {
		return nil, fault.Say(fault.NoApprover, text.Of("there is nobody who may answer; name approvers, or let somebody start the execution")).With("path", "configurations.approvers")
	}
	// People whom escalation adds later count as well; a role may stand for many.
	if e := r.Escalation; e != nil {
		others = append(others, e.To...)
	}
	persons := slices.Compact(slices.Sorted(slices.Values(others)))
	many := slices.ContainsFunc(persons, func(seat string) bool { return seat == Anyone || strings.HasPrefix(seat, seatRole) })
	if !many && len(persons) < r.MinApprovals {
		return nil, wrongConfig("min_approvals", "%d approvals are wanted, and only %d may answer", r.MinApprovals, len(persons))
	}
	return list, nil
}

// defaultApprovers lists who may answer when no approver is named: the user who started the execution, or those whom the purpose of the
// question concerns.
func defaultApprovers(purpose, starter string, r Request) ([]string, error) {
	switch purpose {
	case PurposeOutcomeUnknown, PurposeBudget:
		return []string{"role:operator", "role:editor", "role:admin"}, nil
	case PurposeDrift: // a user accepts for that user, an admin for everybody
		if starter == "" {
			return []string{"role:admin"}, nil
		}
		return []string{starter, "role:admin"}, nil
	}
	var list []string
	if starter != "" {
		list = append(list, starter)
	}
	// People whom the settings address by name are asked, so they may answer.
	var settings struct {
		Mail []string `json:"recipient_emails"`
	}
	if !payload.IsNull(r.Settings) && json.Unmarshal(r.Settings, &settings) == nil {
		for _, text := range settings.Mail {
			seat, err := mailSeat(text)
			if err != nil {
				return nil, wrongConfig("recipient_emails", "%q is not a mail address", text)
			}
			if !slices.Contains(list, seat) {
				list = append(list, seat)
			}
		}
	}
	if len(list) == 0 && purpose != PurposeNode {
		return []string{"role:approver", "role:operator", "role:admin", "role:editor"}, nil
	}
	return list, nil
}

// people are the users of a workspace, as far as they answer questions.
type people struct {
	media Media
	users []identity.User // in order of id
	// byAddress are the users of an address. An address that several users share does not identify any of them.
	byAddress map[string][]int
	byID      map[string]int
}

func (m Media) newPeople(users []identity.User) *people {
	p := &people{media: m, users: users, byAddress: map[string][]int{}, byID: make(map[string]int, len(users))}
	for n, u := range users {
		p.byID[u.ID] = n
		for _, a := range m.Addresses(u) {
			p.byAddress[a] = append(p.byAddress[a], n)
		}
	}
	return p
}

// somebody is a person who answers. Key identifies the person: user:ID for a user, whatever address they use, else the address.
type somebody struct {
	key string
	// user is their user id, address where the answer comes from; one of the two is set.
	user    string
	address string
	// account is the account that the address is an alias of; empty: it is not an alias.
	account string
	// seats are the approvers that stand for this person.
	seats []string
}

// user finds the person of a user id.
func (p *people) user(id string) (somebody, error) {
	n, ok := p.byID[id]
	if !ok {
		return somebody{}, fault.Say(fault.Forbidden, text.Of("user %q is not in this workspace", id))
	}
	u := p.users[n]
	if u.Disabled {
		return somebody{}, fault.Say(fault.Forbidden, text.Of("user %q is disabled", id))
	}
	return somebody{key: seatUser + u.ID, user: u.ID, seats: p.media.Seats(u)}, nil
}

// at finds the person of an approver that is not a role: a user, or an address, which may be a user's.
func (p *people) at(seat string) (somebody, error) {
	if id, ok := strings.CutPrefix(seat, seatUser); ok {
		return p.user(id)
	}
	if !isAddress(seat) {
		return somebody{}, fault.Newf(fault.Invalid, "%q does not name one person; name a user as user:ID, or an address", seat)
	}
	switch users := p.byAddress[seat]; len(users) {
	case 0:
		return somebody{key: seat, address: seat, seats: []string{seat}}, nil
	case 1:
		return p.user(p.users[users[0]].ID)
	}
	return somebody{}, fault.Say(fault.Forbidden, text.Of("several users have the address %q; answer in the inbox", seat))
}

// named returns the person whom a text names where only one person can be meant: "admin" is the user with that id, if there is one, and
// not the role.
func (p *people) named(text string) (somebody, error) {
	if _, ok := p.byID[strings.TrimSpace(text)]; ok {
		return p.user(strings.TrimSpace(text))
	}
	seat, err := p.media.normalApprover(text)
	if err != nil {
		return somebody{}, err
	}
	return p.at(seat)
}

// sender returns the person of the addresses of one sender, which must not belong to different users.
func (p *people) sender(seats ...string) (somebody, error) {
	var found somebody
	var extra []string
	for _, seat := range seats {
		if seat == "" {
			continue
		}
		one, err := p.at(seat)
		switch {
		case err != nil:
			return somebody{}, err
		case found.key == "" || found.user == "" && one.user != "":
			extra = append(extra, found.seats...)
			found = one
		case one.user != "" && one.user != found.user:
			return somebody{}, fault.Say(fault.Forbidden, text.Of("the addresses %s are those of different users; answer in the inbox", strings.Join(seats, ", ")))
		default:
			extra = append(extra, one.seats...)
		}
	}
	if found.key == "" {
		return somebody{}, fault.Say(fault.Forbidden, text.Of("the reply does not say who it is from"))
	}
	found.seats = append(slices.Clone(found.seats), extra...)
	return found, nil
}

// asked returns the people that approvers stand for: enabled users, and addresses that belong to no user. Everybody is true
// when anyone may answer.
func (p *people) asked(approvers []string) (keys []string, everybody bool) {
	seen := map[string]bool{}
	add := func(key string) {
		if !seen[key] {
			seen[key], keys = true, append(keys, key)
		}
	}
	for _, seat := range approvers {
		if seat == Anyone {
			everybody = true
			continue
		}
		if seat == Visitor {
			add(seat)
			continue
		}
		if role, ok := strings.CutPrefix(seat, seatRole); ok {
			for _, u := range p.users {
				if !u.Disabled && slices.Contains(u.Roles, identity.Role(role)) {
					add(seatUser + u.ID)
				}
			}
			continue
		}
		if one, err := p.at(seat); err == nil {
			add(one.key)
		} else if users := p.byAddress[seat]; len(users) > 1 { // each of them may answer in the inbox
			for _, n := range users {
				if u := p.users[n]; !u.Disabled {
					add(seatUser + u.ID)
				}
			}
		}
	}
	return keys, everybody
}

// mayAnswer returns an error when somebody may not answer a question.
func (s *sitting) mayAnswer(who somebody) *fault.Error {
	err := mayAnswer(s.Interaction, s.request, s.progress, who)
	if err != nil && has([]string{seatRole + string(identity.Admin)}, who.seats) && s.orphaned() && !s.Excludes(who.user) {
		return nil
	}
	return err
}

// orphaned says whether no one is left who may answer: all who were asked are gone or disabled. Then an admin may answer,
// so that the execution does not wait for ever.
func (s *sitting) orphaned() bool {
	asked, everybody := s.people.asked(s.Approvers) // delegates are among them
	able := func(key string) bool {
		return !s.progress.gaveAway(key) && !s.Excludes(strings.TrimPrefix(key, seatUser))
	}
	return !everybody && !slices.ContainsFunc(asked, able)
}

// excluded says why a requester may not answer. read-only
var excluded = text.Of("who started the execution, forked it, or retried a node or gave one its output may not answer this question")

// notAsShown says that what is asked has changed since somebody looked at it. read-only
var notAsShown = text.Of("what you were shown is not what is asked; look at it again")

func mayAnswer(i store.Interaction, r Request, p progress, who somebody) *fault.Error {
	switch {
	case i.Excludes(who.user):
		return fault.Say(fault.Forbidden, excluded)
	case p.gaveAway(who.key):
		return fault.Say(fault.Forbidden, text.Of("you have delegated your answer to somebody else"))
	case p.holds(who.seats) != "", has(i.Approvers, who.seats):
		return nil
	case slices.Contains(i.Approvers, Anyone) && r.Access != "link":
		return nil
	}
	if has([]string{seatRole + string(identity.Admin)}, who.seats) {
		return fault.Say(fault.Forbidden, text.Of("this question is not for you to answer; an admin can decide it in the place of those who are asked, with an override and a reason"))
	}
	return fault.Say(fault.Forbidden, text.Of("this question is not for you to answer"))
}

// gaveAway says whether somebody has handed their vote on.
func (p progress) gaveAway(key string) bool {
	return slices.ContainsFunc(p.Delegations, func(d delegation) bool { return d.From == key })
}

// delegatedBy is the admin who handed on the vote that somebody holds; empty: its owner did so.
func (p progress) delegatedBy(key string) string {
	for _, d := range p.Delegations {
		if d.To == key {
			return d.By
		}
	}
	return ""
}

// holds returns the person whose vote somebody holds, by one of their seats; empty: only their own.
func (p progress) holds(seats []string) string {
	for _, d := range p.Delegations {
		if slices.Contains(seats, d.To) {
			return d.From
		}
	}
	return ""
}
