package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tandem/fault"
	"tandem/payload"
	"tandem/store"
)

// EpisodicConfig are the configurations of a memory of what happened.
type EpisodicConfig struct {
	Operation string `json:"operation" enum:"store|query|delete" legacy:"load_context|remember" doc:"What is done; without it the input says so." zh:"执行的操作；省略时由输入决定。"`
	Common
	ImportanceThreshold   float64 `json:"importance_threshold" range:"0..1" doc:"How important an episode must be to be kept, from 0 to 1." zh:"保留事件的重要性下限（0 到 1）。"`
	RetentionPeriod       string  `json:"retention_period" doc:"How long episodes are kept, such as 30 days." zh:"事件的保留时间，如 30 days。"`
	TemporalContextWindow string  `json:"temporal_context_window" doc:"How far back a model is told about, such as 7 days." zh:"提供给模型的时间范围，如 7 days。"`
}

// Defaults sets what is not configured.
func (c *EpisodicConfig) Defaults() {
	c.Common, c.ImportanceThreshold, c.RetentionPeriod, c.TemporalContextWindow = common(), 0.5, "30 days", "7 days"
}

// EpisodicInput is what a memory of what happened is asked.
type EpisodicInput struct {
	Ask
	Actor  string `json:"actor,omitempty" doc:"Who has done something." zh:"谁做的。"`
	Action string `json:"action,omitempty" doc:"What was done." zh:"做了什么。"`
	// Object and Outcome are texts, or whatever else describes them.
	Object     json.RawMessage `json:"object,omitempty" doc:"To whom or what." zh:"对象。"`
	Details    json.RawMessage `json:"context,omitempty" doc:"What is worth knowing besides." zh:"相关背景。"`
	Outcome    json.RawMessage `json:"outcome,omitempty" doc:"What came of it." zh:"结果。"`
	Importance *float64        `json:"importance,omitempty" doc:"How important it is, from 0 to 1." zh:"重要程度（0 到 1）。"`
	// Timestamp is RFC 3339, or seconds or milliseconds since 1970.
	Timestamp json.RawMessage `json:"timestamp,omitempty" doc:"When it was; without it now." zh:"发生时间；省略时为当前时间。"`
	EventType string          `json:"event_type,omitempty" doc:"What sort of event it is." zh:"事件类型。"`
	// QueryParams narrow a query; ID and IDs name episodes to remove.
	QueryParams *EpisodeQuery `json:"query_params,omitempty" doc:"What is looked for: who, what, from when until when." zh:"查询条件：谁、什么、何时。"`
	ID          string        `json:"id,omitempty" doc:"The episode to remove." zh:"要删除的情景。"`
	IDs         []string      `json:"ids,omitempty" doc:"The episodes to remove." zh:"要删除的多个情景。"`
}

// EpisodeQuery narrows a query. Empty fields do not.
type EpisodeQuery struct {
	// Query is words that one of the texts must have.
	Query         string          `json:"query,omitempty"`
	Actor         string          `json:"actor,omitempty"`
	Action        string          `json:"action,omitempty"`
	Object        string          `json:"object,omitempty"`
	EventType     string          `json:"event_type,omitempty"`
	Outcome       string          `json:"outcome,omitempty"`
	Since         json.RawMessage `json:"since,omitempty"`
	Until         json.RawMessage `json:"until,omitempty"`
	MinImportance float64         `json:"min_importance,omitempty"`
	Limit         int             `json:"limit,omitempty"`
}

// EpisodicOutput is what a memory of what happened answers.
type EpisodicOutput struct {
	Answer
	// Episodes are the latest first, the timeline is as it went.
	Episodes       []Episode `json:"episodes" doc:"What has happened." zh:"发生的事情。"`
	Timeline       []Moment  `json:"timeline" doc:"The same in the order of time, as text." zh:"按时间排列的文本。"`
	ContextSummary string    `json:"context_summary" doc:"All of it as text." zh:"以上内容的文本。"`
	Deleted        int       `json:"deleted,omitempty" doc:"How many were removed." zh:"删除的数量。"`
}

// Episode is something that happened.
type Episode struct {
	ID         string          `json:"id"`
	Actor      string          `json:"actor"`
	Action     string          `json:"action"`
	Object     json.RawMessage `json:"object,omitempty"`
	Context    json.RawMessage `json:"context,omitempty"`
	Outcome    json.RawMessage `json:"outcome,omitempty"`
	Importance float64         `json:"importance"`
	EventType  string          `json:"event_type,omitempty"`
	Timestamp  string          `json:"timestamp"`
}

// Moment is an episode in one line.
type Moment struct {
	Timestamp string `json:"timestamp"`
	Text      string `json:"text"`
}

const sortEpisode = "episode"

type episodes struct {
	*session
	cfg               EpisodicConfig
	retention, window time.Duration
}

func (s *Store) openEpisodes(c Call, cfg EpisodicConfig) (*episodes, error) {
	e := &episodes{session: s.open(c, "EPISODIC_MEMORY", cfg.Common, ""), cfg: cfg}
	var err error
	if e.retention, err = period("retention_period", cfg.RetentionPeriod); err != nil {
		return nil, err
	}
	e.window, err = period("temporal_context_window", cfg.TemporalContextWindow)
	return e, err
}

func (c EpisodicConfig) open(s *Store, call Call) (keeper, error) {
	e, err := s.openEpisodes(call, c)
	if err != nil {
		return nil, err // not e: a nil pointer would be a keeper
	}
	return e, nil
}

var periodText = regexp.MustCompile(`^(\d{1,6}(?:\.\d{1,3})?)\s*(seconds?|s|秒|minutes?|min|m|分钟|hours?|h|小时|days?|d|天|weeks?|w|周|months?|个月|years?|y|年)$`)

// CheckPeriod refuses what is not a length of time.
func CheckPeriod(field, text string) error {
	_, err := period(field, text)
	return err
}

// period reads "30 days".
func period(field, text string) (time.Duration, error) {
	m := periodText.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if m == nil {
		return 0, fault.Newf(fault.InvalidConfig, `%q must be a time like "30 days", not %q`, field, text).With("path", "configurations."+field)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, fault.Newf(fault.InvalidConfig, "%q cannot be read: %w", field, err)
	}
	unit := 365 * 24 * time.Hour
	for _, u := range []struct {
		names string
		unit  time.Duration
	}{
		{"|s|秒|second|seconds|", time.Second}, {"|m|min|分钟|minute|minutes|", time.Minute}, {"|h|小时|hour|hours|", time.Hour},
		{"|d|天|day|days|", 24 * time.Hour}, {"|w|周|week|weeks|", 7 * 24 * time.Hour}, {"|个月|month|months|", 30 * 24 * time.Hour},
	} {
		if strings.Contains(u.names, "|"+m[2]+"|") {
			unit = u.unit
		}
	}
	const most = 200 * 365 * 24 * time.Hour
	if d := n * float64(unit); d < float64(most) {
		return time.Duration(d), nil
	}
	return most, nil
}

// moment reads a time: RFC 3339, a date, or seconds or milliseconds since 1970. Nothing is zero.
func moment(field string, raw json.RawMessage) (int64, error) {
	text := strings.Trim(strings.TrimSpace(string(raw)), `"`)
	if text == "" || text == "null" {
		return 0, nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 && n < 1e15 {
		if n < 1e11 {
			n *= 1000
		}
		return int64(n), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, fault.Newf(fault.InvalidInput, `%q must be a time like "2030-01-31T09:00:00Z", not %q`, field, text).With("path", field)
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// Episodes keeps what happened, when, and with what outcome.
func (s *Store) Episodes(ctx context.Context, c Call, cfg EpisodicConfig, in EpisodicInput) (out EpisodicOutput, err error) {
	op := operation(cfg.Operation, in.Operation, "")
	out.Episodes, out.Timeline = []Episode{}, []Moment{}
	e, err := s.openEpisodes(c, cfg)
	if err != nil {
		return out, err
	}
	if done, err := attached(ctx, e, op, in.Ask, &out.Answer); done || err != nil {
		return out, err
	}
	switch op {
	case "store":
		if in.Actor == "" {
			return out, required(op, "actor")
		}
		if in.Action == "" {
			return out, required(op, "action")
		}
		one := Episode{Actor: in.Actor, Action: in.Action, Object: in.Object, Context: in.Details, Outcome: in.Outcome,
			Importance: 0.5, EventType: in.EventType}
		if in.Importance != nil {
			one.Importance = *in.Importance
		}
		at, err := moment("timestamp", in.Timestamp)
		if err != nil {
			return out, err
		}
		stored, err := e.put(ctx, &one, at)
		if err != nil {
			return out, err
		}
		out.Stored = yes(stored)
		if stored {
			e.tellEpisodes(&out, []Episode{one})
		}
		return out, nil
	case "query":
		q := EpisodeQuery{Query: in.Query}
		if in.QueryParams != nil {
			q = *in.QueryParams
			if q.Query == "" {
				q.Query = in.Query
			}
		}
		list, err := e.query(ctx, q)
		if err != nil {
			return out, err
		}
		e.tellEpisodes(&out, list)
		return out, nil
	case "delete":
		ids := in.IDs
		if in.ID != "" {
			ids = append([]string{in.ID}, ids...)
		}
		if len(ids) == 0 && in.QueryParams == nil {
			return out, required(op, "id")
		}
		if in.QueryParams != nil {
			q := *in.QueryParams
			q.Limit = maxEpisodes
			list, err := e.query(ctx, q)
			if err != nil {
				return out, err
			}
			for _, one := range list {
				ids = append(ids, one.ID)
			}
		}
		out.Deleted, err = e.remove(ctx, sortEpisode, ids...)
		return out, err
	}
	return out, unknown(op, "store", "query", "delete", LoadContext, Remember)
}

// put stores an episode that is important enough and not too long ago.
func (e *episodes) put(ctx context.Context, one *Episode, at int64) (bool, error) {
	if one.Importance < 0 || one.Importance > 1 {
		return false, fault.New(fault.InvalidInput, `"importance" must be a number from 0 to 1`).With("path", "importance")
	}
	if at == 0 {
		at = e.millis()
	}
	expires := at + e.retention.Milliseconds()
	if one.Importance < e.cfg.ImportanceThreshold || expires <= e.millis() {
		return false, nil
	}
	one.Timestamp = stamp(at)
	_, err := e.change(ctx, func(_ context.Context, version int64) (d draft, err error) {
		one.ID = "ep_" + e.recordID(version, 0)
		raw, err := body("episode", one)
		d.Put = []store.MemoryRecord{{Sort: sortEpisode, ID: one.ID, Body: raw, Weight: one.Importance, At: at, Expires: expires,
			Text: &store.MemoryText{Title: one.Actor + "\n" + one.Action + "\n" + valueText(one.Object),
				Content: valueText(one.Outcome) + "\n" + payload.JSON(one.Context), Extra: one.EventType}}}
		return d, err
	})
	return err == nil, err
}

// maxEpisodes bounds what a query returns; maxScan what it looks at.
const (
	maxEpisodes = 1000
	maxScan     = 20_000
)

func (e *episodes) query(ctx context.Context, q EpisodeQuery) ([]Episode, error) {
	since, err := moment("query_params.since", q.Since)
	if err != nil {
		return nil, err
	}
	until, err := moment("query_params.until", q.Until)
	if err != nil {
		return nil, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 20
	}
	limit = min(limit, maxEpisodes)
	var records []store.MemoryRecord
	if words := store.Query(q.Query, maxTerms); len(words) > 0 {
		if version, err := e.version(ctx); err != nil || version < 0 {
			return nil, err
		}
		found, err := e.o.Records.Search(ctx, e.principal(),
			store.MemorySearch{Scope: e.scope.ID, Sort: sortEpisode, Words: words, Now: e.millis(), Limit: maxEpisodes})
		if err != nil {
			return nil, err
		}
		records = slices.DeleteFunc(found.Records, func(r store.MemoryRecord) bool {
			return since != 0 && r.At < since || until != 0 && r.At > until
		})
		slices.SortStableFunc(records, func(a, b store.MemoryRecord) int { return int(b.At - a.At) })
	} else if records, err = e.list(ctx, store.MemoryQuery{Sort: sortEpisode, Since: since, Until: until, Order: store.LatestFirst,
		Limit: maxScan}); err != nil {
		return nil, err
	}
	fits := func(wanted, has string) bool { return wanted == "" || strings.EqualFold(wanted, has) }
	var list []Episode
	for _, r := range records {
		var one Episode
		if err := read(r, &one); err != nil {
			return nil, err
		}
		if fits(q.Actor, one.Actor) && fits(q.Action, one.Action) && fits(q.Object, valueText(one.Object)) &&
			fits(q.EventType, one.EventType) && fits(q.Outcome, valueText(one.Outcome)) && one.Importance >= q.MinImportance {
			list = append(list, one)
		}
		if len(list) == limit {
			break
		}
	}
	return list, nil
}

func (e *episodes) line(one Episode) string {
	text := one.Actor + " " + one.Action
	if object := valueText(one.Object); object != "" {
		text += " " + object
	}
	if outcome := valueText(one.Outcome); outcome != "" {
		text += " → " + outcome
	}
	return text
}

// valueText is a value as people read it: a text as it is, null as nothing.
func valueText(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	return payload.Text(raw)
}

// tellEpisodes fills the answer with episodes, the latest first.
func (e *episodes) tellEpisodes(out *EpisodicOutput, list []Episode) {
	out.Episodes = append(out.Episodes, list...)
	for _, one := range slices.Backward(list) {
		out.Timeline = append(out.Timeline, Moment{one.Timestamp, e.line(one)})
	}
	out.ContextSummary = e.write(list, 2000).Text
	out.Context = e.write(list, e.cfg.MaxContextChars).Text
}

// write tells episodes as they went; when there is no room, the oldest are left out.
func (e *episodes) write(list []Episode, room int) Context {
	var told Context
	var lines []string
	for _, one := range list {
		text := fmt.Sprintf("%s %s", one.Timestamp, cut(e.line(one), 500))
		n := len([]rune(text)) + 1
		if n > room {
			break
		}
		room -= n
		lines = append(lines, text)
	}
	slices.Reverse(lines)
	told.Text, told.Items = strings.Join(lines, "\n"), len(lines)
	return told
}

// context is what happened lately, and of older what has to do with the question.
func (e *episodes) context(ctx context.Context, query string) (Context, error) {
	raw, err := json.Marshal(e.millis() - e.window.Milliseconds())
	if err != nil {
		return Context{}, err
	}
	list, err := e.query(ctx, EpisodeQuery{Since: raw, Limit: 50})
	if err != nil {
		return Context{}, err
	}
	if query != "" {
		older, err := e.query(ctx, EpisodeQuery{Query: query, Until: raw, Limit: 10})
		if err != nil {
			return Context{}, err
		}
		list = append(list, older...)
	}
	return e.write(list, e.cfg.MaxContextChars), nil
}

func (e *episodes) remember(ctx context.Context, x Exchange) (bool, error) {
	one := Episode{Actor: "user", Action: "asked", Importance: 0.5, EventType: "conversation"}
	var err error
	if one.Object, err = json.Marshal(cut(x.User, 500)); err != nil {
		return false, err
	}
	if one.Outcome, err = json.Marshal(cut(x.Assistant, 500)); err != nil {
		return false, err
	}
	return e.put(ctx, &one, 0)
}
