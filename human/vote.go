package human

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
	"tandem/text"
)

// vote is an answer that counts, by one person.
type vote struct {
	// person is who has given it, holder whose vote it is: the same, unless it was delegated.
	person, holder string
	outcome        string
	options        []string
	average        *float64
	// data is the answer. Of earlier ones files have no content.
	data    json.RawMessage
	choice  string
	channel string
	raw     string // what was said, in prose
	at      int64
	origin  store.Origin
}

// verdict is the result of adding up votes.
type verdict struct {
	ended   bool
	outcome string
	// by is the vote that stands for the end.
	by           vote
	disagreement bool
}

// tally adds up votes. Left is how many more people could vote; below 0: any number.
func tally(r Request, votes []vote, left int) verdict {
	if len(votes) == 0 {
		return verdict{}
	}
	yes, no, best := 0, 0, 0
	same := map[string]int{} // by option that decides nothing
	for _, v := range votes {
		switch v.outcome {
		case Confirmed:
			yes++
		case Rejected:
			no++
		default:
			key := strings.Join(v.options, "\x00")
			same[key]++
			best = max(best, same[key])
		}
	}
	end := func(outcome string, disagreement bool) verdict {
		by := votes[len(votes)-1]
		for _, v := range votes {
			// The last vote for the outcome; when too few could still agree, the last vote that did not agree.
			if v.outcome == outcome || outcome == Rejected && no == 0 && v.outcome != Confirmed {
				by = v
			}
		}
		return verdict{ended: true, outcome: outcome, by: by, disagreement: disagreement}
	}
	consensus := r.Type == Review && r.Review != nil && r.Review.Consensus
	switch {
	case consensus && yes > 0 && no > 0:
		return end(Rejected, true)
	case no >= max(1, r.MinRejections):
		return end(Rejected, false)
	case consensus && left > 0: // everybody who is asked has to agree
	case yes >= max(1, r.MinApprovals):
		return end(Confirmed, false)
	case best >= max(1, r.MinApprovals):
		return end(Neither, false)
	case left >= 0 && max(yes, best)+left < r.MinApprovals:
		return end(Rejected, false)
	}
	return verdict{}
}

// votes returns the answers so far that count. An address that belongs to a user by now votes as that user.
func (s *sitting) votes() []vote {
	if s.cast != nil {
		return s.cast
	}
	list := []vote{}
	for _, one := range s.responses {
		if !one.Accepted || one.OverruledBy != "" {
			continue
		}
		key := one.Address
		if one.User != "" {
			key = seatUser + one.User
		} else if who, err := s.people.at(one.Address); err == nil {
			key = who.key
		}
		v := vote{person: key, holder: s.holder(key), outcome: one.Classification, data: one.Data, channel: one.Channel, raw: one.Raw,
			at: one.ReceivedAt, origin: one.Origin}
		if slices.ContainsFunc(list, func(o vote) bool { return o.holder == v.holder }) {
			continue // two addresses turned out to be one person
		}
		v.describe(s.request, s.Purpose)
		list = append(list, v)
	}
	s.cast = list
	return list
}

// describe reads from a recorded answer what was chosen and how it scores.
func (v *vote) describe(r Request, purpose string) {
	var a Answer
	if purpose != PurposeNode || json.Unmarshal(v.data, &a) != nil {
		return
	}
	if v.options = a.Chosen; a.Action != "" {
		v.options = []string{a.Action}
	}
	if r.Type == Review {
		q := r.asked(purpose)
		v.average = q.Average(a.Scores)
	}
}

// holder returns the person whose vote somebody casts: their own, or that of the person who first delegated it.
func (s *sitting) holder(key string) string {
	seats := []string{key}
	for range s.progress.Delegations {
		from := s.progress.holds(seats)
		if from == "" {
			break
		}
		key, seats = from, []string{from}
	}
	return key
}

// left counts the people who could still vote; -1: everybody could.
func (s *sitting) left(votes []vote) int {
	approvers := s.Approvers
	if e := s.request.Escalation; e != nil && s.progress.Escalated == 0 &&
		(s.request.TimeoutSeconds == 0 || e.AfterSeconds < s.request.TimeoutSeconds) {
		approvers = slices.Concat(approvers, e.To)
	}
	asked, everybody := s.people.asked(approvers)
	if everybody {
		return -1
	}
	n := 0
	for _, key := range asked {
		switch {
		case s.Excludes(strings.TrimPrefix(key, seatUser)):
		case s.progress.gaveAway(key):
		case slices.ContainsFunc(votes, func(v vote) bool { return v.person == key || v.holder == key }):
		default:
			n++
		}
	}
	return n
}

// tooLate is the error for an answer after the end of a question; it says how the question has ended.
func (s *sitting) tooLate() *fault.Error {
	data, responder := s.Response, ""
	for _, one := range s.responses {
		if one.Accepted && one.OverruledBy == "" {
			responder = personName(one)
		}
	}
	status := s.Status
	if status == store.InteractionPending {
		status = store.InteractionTimeout // its time is up, and the clock is about to end it
	}
	return ended(s.ID, status, data, responder)
}

func ended(id string, status store.InteractionStatus, data json.RawMessage, responder string) *fault.Error {
	if payload.IsNull(data) {
		data = json.RawMessage("null")
	}
	how := text.As(string(status))
	if status == store.InteractionCompleted && responder != "" {
		how = text.Of("%s, answered by %q", how, responder)
		var said struct {
			Action string `json:"action"`
		}
		if json.Unmarshal(data, &said) == nil && said.Action != "" {
			how = text.Of("%s with %q", how, said.Action)
		}
	}
	return fault.Say(fault.Conflict, text.Of("question %q is no longer open; it has ended with %s", id, how)).
		With("status", string(status)).With("response_data", data).With("responder", responder)
}

func personName(one store.Response) string {
	if one.User != "" {
		return one.User
	}
	return one.Address
}

// open returns an error when a question cannot be answered now.
func (s *sitting) open() *fault.Error {
	if s.Status != store.InteractionPending || s.TimeoutAt > 0 && s.now >= s.TimeoutAt {
		return s.tooLate()
	}
	return nil
}

// voted finds what somebody has answered already.
func voted(votes []vote, who somebody, holder string) *fault.Error {
	for _, v := range votes {
		if v.person == who.key || v.holder == who.key || v.holder == holder {
			data := v.data
			if payload.IsNull(data) {
				data = json.RawMessage("null")
			}
			return fault.Say(fault.Conflict, text.Of("you have answered already; others still have to")).
				With("status", string(store.InteractionPending)).With("response_data", data).With("responder", strings.TrimPrefix(v.person, seatUser))
		}
	}
	return nil
}

// admit returns an error when somebody cannot answer a question now.
func (s *sitting) admit(who somebody, argumentsHash string) error {
	// A person who may not answer does not learn the answer either.
	if e := s.mayAnswer(who); e != nil {
		return e
	}
	if e := s.open(); e != nil {
		return e
	}
	if argumentsHash != "" && argumentsHash != s.ArgumentsHash {
		return fault.Say(fault.Conflict, notAsShown).With("arguments_hash", s.ArgumentsHash)
	}
	if e := voted(s.votes(), who, s.holder(who.key)); e != nil {
		return e
	}
	return nil
}

// answer takes an answer of somebody and ends the question if that is enough. The response has what else is recorded about it.
func (s *sitting) answer(who somebody, in Submission, response store.Response) error {
	if err := s.admit(who, in.ArgumentsHash); err != nil {
		return err
	}
	if err := s.throughRequester(who.user, response.Origin.Means); err != nil {
		return err
	}
	if err := s.oneWordEach(who, response.Origin); err != nil {
		return err
	}
	u, err := s.request.readByPurpose(s.Purpose, in.Data, strings.TrimPrefix(who.key, seatUser), timestamp(s.now), came(response.Origin))
	if err != nil {
		return err
	}
	response.Accepted, response.Data, response.Classification = true, u.kept, u.outcome
	response = s.record(who, in.Channel, response)
	s.say("interaction.respond", who.key, response.Origin.Means, "outcome", u.outcome, "channel", response.Channel)
	v := vote{
		person: who.key, holder: s.holder(who.key), outcome: u.outcome, options: u.options, average: u.average, data: u.data,
		choice:  u.choice,
		channel: response.Channel, raw: response.Raw, at: s.now, origin: response.Origin,
	}
	votes := slices.Concat(s.votes(), []vote{v})
	if verdict := tally(s.request, votes, s.left(votes)); verdict.ended {
		return s.decided(verdict, votes)
	}
	return nil
}

// oneWordEach keeps one person from counting as several who agree: a person who has said what another's reply means can neither answer
// as well nor read a second reply.
func (s *sitting) oneWordEach(who somebody, origin store.Origin) error {
	if several := s.request.MinApprovals > 1 || s.request.Review != nil && s.request.Review.Consensus; !several {
		return nil
	}
	for _, v := range s.votes() {
		if origin.ReadBy == "" && v.origin.ReadBy == "" {
			continue // both answer for themselves
		}
		earlier := cmp.Or(v.origin.ReadBy, strings.TrimPrefix(v.person, seatUser))
		if earlier == cmp.Or(origin.ReadBy, who.user) {
			return fault.New(fault.Forbidden, "several people have to agree, and one person's word counts once: your answer and what you say about the reply of another are the same word; ask who wrote the reply to answer by form")
		}
	}
	return nil
}

// record adds a response to the change.
func (s *sitting) record(who somebody, channel string, one store.Response) store.Response {
	change := s.begin()
	if channel == "" {
		channel = InApp
	}
	// One change has one version, so the id is unique.
	one.ID = shapedID("response", s.Workspace, s.ID, strconv.FormatInt(s.Version, 10), strconv.Itoa(len(change.Responses)))
	one.Interaction, one.Channel, one.ReceivedAt = s.ID, channel, s.now
	one.User, one.Address = who.user, who.address
	if who.account != "" && one.Reasoning == "" {
		one.Reasoning = "from " + who.account // names move, accounts stay
	}
	change.Responses = append(change.Responses, one)
	return one
}

// decided ends the question as its votes say.
func (s *sitting) decided(v verdict, votes []vote) error {
	by := v.by
	responder := strings.TrimPrefix(by.person, seatUser)
	kept := by.data
	for _, one := range s.change.Responses { // as it is recorded, without files
		if one.Accepted && by.at == one.ReceivedAt && responder == personName(one) {
			kept = one.Data
		}
	}
	if s.Purpose != PurposeNode {
		choice, value, outcome := by.choice, by.data, engine.AskDone
		if v.outcome == Rejected && by.outcome == Confirmed { // too few could agree; nothing of what was said counts
			choice, value, outcome = missed(s.Purpose)
		}
		return s.end(store.InteractionCompleted, kept, responder, by.origin, outcome, choice, value)
	}
	result := Result{
		Status: string(store.InteractionCompleted), ResponseType: s.Type, ResponseData: by.data, InteractionID: s.ID, Responder: responder,
		Approvals: s.told(votes), UserResponse: ownWords(by.raw), ArgumentsHash: s.ArgumentsHash,
	}
	if v.outcome != Neither {
		result.Classification = v.outcome
	}
	if by.outcome == v.outcome {
		result.Options = by.options
	}
	if s.Type == Review {
		passed := v.outcome == Confirmed
		result.Passed, result.Disagreement, result.Reviews = &passed, v.disagreement, result.Approvals
		sum, n := 0.0, 0
		for _, one := range votes {
			if one.average != nil {
				sum, n = sum+*one.average, n+1
			}
		}
		if n > 0 {
			mean := sum / float64(n)
			result.Average = &mean
		}
	}
	value, err := json.Marshal(result)
	if err != nil {
		return fault.Newf(fault.Internal, "what was answered to %q cannot be told: %w", s.ID, err)
	}
	return s.end(store.InteractionCompleted, kept, responder, by.origin, engine.AskDone, "", value)
}

// missed is the result for another part when a quorum was missed.
func missed(purpose string) (choice string, value json.RawMessage, outcome engine.AskOutcome) {
	switch purpose {
	case PurposeToolApproval:
		return "", json.RawMessage(`{"approved":false}`), engine.AskDone
	case PurposeConfirm:
		return "", json.RawMessage(`{"confirm":false}`), engine.AskDone
	case PurposeDrift, PurposeActivation:
		return "", json.RawMessage(`{"accept":false}`), engine.AskDone
	}
	return "", nil, engine.AskCanceled
}

// told are votes in the form that the execution gets.
func (s *sitting) told(votes []vote) []Vote {
	list := make([]Vote, len(votes))
	for n, v := range votes {
		list[n] = Vote{Person: strings.TrimPrefix(v.person, seatUser), Outcome: v.outcome, Data: v.data, Channel: v.channel,
			At: timestamp(v.at), Came: came(v.origin)}
		if v.holder != v.person {
			list[n].For = strings.TrimPrefix(v.holder, seatUser)
			list[n].DelegatedBy = s.progress.delegatedBy(v.person)
		}
	}
	return list
}

func timestamp(at int64) string { return time.UnixMilli(at).UTC().Format(time.RFC3339) }

// end ends the question: its record, its pause, and what the execution gets.
func (s *sitting) end(status store.InteractionStatus, response json.RawMessage, by string, how store.Origin,
	outcome engine.AskOutcome, choice string, value json.RawMessage) error {
	change := s.begin()
	i := &change.Interaction
	i.Status, i.Response, i.NextAt = status, response, 0
	if i.Channel != InApp || len(s.progress.Ways) > 0 {
		i.NextAt = s.now // people who were asked get a notice
	}
	change.Resume = &store.PauseEnd{ID: i.ID, Status: store.PauseResumed, Reason: store.ResumedByAnswer, Data: response, Time: s.now}
	if status == store.InteractionCancelled {
		change.Resume.Status, change.Resume.Reason = store.PauseCanceled, "canceled"
	}
	var err error
	change.Deliver, err = answerItem(*i, by, how, outcome, choice, value, s.now)
	return err
}

// timeoutResult is the result of a question that was not answered in time: the response that is stored, and what the execution gets. The
// node decides whether it fails.
func timeoutResult(i store.Interaction, r Request, responses []store.Response, now int64) (response, value json.RawMessage, err error) {
	if i.Purpose != PurposeNode {
		return nil, nil, nil
	}
	s := &sitting{Interaction: i, request: r, responses: responses, people: Media(nil).newPeople(nil), now: now}
	if s.progress, err = readProgress(i); err != nil {
		return nil, nil, err
	}
	result := Result{
		Status: string(store.InteractionTimeout), ResponseType: i.Type, ResponseData: json.RawMessage(`{}`), InteractionID: i.ID,
		Approvals:      s.told(s.votes()),
		Classification: TimedOut, ArgumentsHash: i.ArgumentsHash,
	}
	if r.TimeoutAction == TimeoutDefault {
		u, err := r.readAnswer(r.TimeoutResponse, "", "", Came{})
		if err != nil {
			return nil, nil, err
		}
		result.ResponseData, result.Options, result.Average = u.data, u.options, u.average
		if result.Classification = u.outcome; u.outcome == Neither {
			result.Classification = ""
		}
		if i.Type == Review {
			passed := u.outcome == Confirmed
			result.Passed = &passed
		}
		response = u.kept
	}
	if value, err = json.Marshal(result); err != nil {
		return nil, nil, fault.Newf(fault.Internal, "the timeout of %q cannot be told: %w", i.ID, err)
	}
	return response, value, nil
}

// raised is the budget that the end of a question raises, and by how much; empty: none.
func (s *sitting) raised() (budget string, by float64) {
	if s.Purpose != PurposeBudget || s.change.Deliver == nil || s.change.Interaction.Status != store.InteractionCompleted ||
		len(s.change.Responses) == 0 {
		return "", 0
	}
	u, err := s.request.readByPurpose(s.Purpose, s.change.Interaction.Response, "somebody", "", Came{})
	if err != nil {
		return "", 0
	}
	var asked struct {
		Budget string `json:"budget"`
	}
	if json.Unmarshal(s.Request, &asked) != nil {
		return "", 0
	}
	return asked.Budget, u.raise
}

// principalOf is the principal of a person.
func (s *sitting) principalOf(who somebody) identity.Principal {
	return identity.Principal{Workspace: s.Workspace, User: who.user}
}
