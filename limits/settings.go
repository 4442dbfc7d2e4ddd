package limits

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
)

// Options are what a [Service] needs.
type Options struct {
	Stores store.Stores
	// Changed is called when the settings of a workspace have changed, so that what waits may go on. May be nil.
	Changed func(workspace string)
	// Removed is called with what was removed: executions, deliveries, audit, blobs, others. May be nil.
	Removed func(what string, n int64)
	// Gone is called with the executions that were removed, so that caches drop them. May be nil.
	Gone func(workspace string, ids []string)
	// Deleted is called in every pass with each workspace that was deleted, to remove what is kept of it outside of the store.
	// May be nil.
	Deleted func(workspace string) error
	// AuditDays is how many days the audit log is kept in workspaces that do not set it; zero: for ever.
	AuditDays int
	// Now is the clock; nil means the real one.
	Now func() time.Time
	Log *slog.Logger
}

// Service enforces the limits of all workspaces of an installation. It is safe for concurrent use.
type Service struct {
	o    Options
	born time.Time
	// tasks and starts count the starts of each user.
	tasks, starts *Window

	mu         sync.Mutex
	workspaces map[string]*workspace

	// tidying makes sure that one pass runs at a time.
	tidying sync.Mutex
	wake    chan struct{}
	// compacted is when a pass has last freed space. Only the pass uses it.
	compacted time.Time
}

// workspace is what is known about one workspace.
type workspace struct {
	id       string
	settings api.LimitSettings
	// loaded says that the settings were read.
	loaded bool
	// started counts the executions that this process has started, by day; open is how many are about to be.
	started map[string]int64
	open    int64
	// before are the counts of what was started before this process began, by the beginning of the time that is counted.
	before map[string]int64

	// measuring lets one measure at a time; usage is what was found at a time, and cost how long that took.
	measuring sync.Mutex
	usage     store.Usage
	measured  time.Time
	cost      time.Duration
}

// New makes a service. It has no limits before [Service.Load].
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{o: o, born: o.Now(), workspaces: map[string]*workspace{}, wake: make(chan struct{}, 1)}
	s.tasks, s.starts = NewWindow(o.Now), NewWindow(o.Now)
	s.tasks.past, s.starts.past = s.pastOf(isTaskStart), s.pastOf(isRequest)
	return s
}

// Load reads the settings of all workspaces. It is called once, before anything is started.
func (s *Service) Load(ctx context.Context) error {
	if s.o.Stores.Limits == nil {
		return nil // a store that keeps none
	}
	all, err := s.o.Stores.Workspaces.List(ctx, identity.System(""))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range all {
		known := s.known(w.ID)
		if known.settings, err = s.readSettings(ctx, w.ID); err != nil {
			return err
		}
		known.loaded = true
	}
	return nil
}

// readSettings reads the settings of a workspace.
func (s *Service) readSettings(ctx context.Context, workspace string) (settings api.LimitSettings, err error) {
	raw, err := s.o.Stores.Limits.Get(ctx, identity.System(workspace))
	if err != nil || len(raw) == 0 {
		return settings, err
	}
	if err := payload.Read(raw, &settings); err != nil {
		return settings, fault.Newf(fault.Internal, "the limits of workspace %q cannot be read: %w", workspace, err)
	}
	return settings, nil
}

// of returns what is known about a workspace. The settings of one that was made since the start, or that no server has made, are read the
// first time. The caller has the lock.
func (s *Service) of(id string) *workspace {
	w := s.known(id)
	if !w.loaded && s.o.Stores.Limits != nil {
		settings, err := s.readSettings(context.Background(), id)
		if err != nil {
			s.o.Log.Error("the limits of a workspace cannot be read; trying again", "workspace", id, "error", err)
			return w
		}
		w.settings, w.loaded = settings, true
	}
	return w
}

func (s *Service) known(id string) *workspace {
	w := s.workspaces[id]
	if w == nil {
		w = &workspace{id: id, started: map[string]int64{}, before: map[string]int64{}}
		s.workspaces[id] = w
	}
	return w
}

// Settings returns the settings of a workspace.
func (s *Service) Settings(workspace string) api.LimitSettings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(workspace).settings
}

// Set replaces the settings of the principal's workspace, once they are on disk.
func (s *Service) Set(ctx context.Context, p identity.Principal, settings api.LimitSettings) error {
	if err := Check(&settings); err != nil {
		return err
	}
	raw, err := payload.Marshal(settings)
	if err != nil {
		return err
	}
	if err := s.o.Stores.Limits.Put(ctx, p, raw, s.o.Now().UnixMilli()); err != nil {
		return err
	}
	s.mu.Lock()
	s.of(p.Workspace).settings = settings
	s.mu.Unlock()
	if s.o.Changed != nil {
		s.o.Changed(p.Workspace)
	}
	s.Nudge()
	return nil
}

// defaultWindow is the length of a window without one, in seconds.
const defaultWindow = 60

// Check refuses settings that contradict themselves, and completes those that leave something out.
func Check(settings *api.LimitSettings) error {
	// The order does not matter: one error is enough.
	for name, w := range map[string]*api.StartWindow{"starts": &settings.Starts, "starts_per_user": &settings.StartsPerUser} {
		switch {
		case w.Count == 0 && w.Seconds > 0:
			return api.WrongField(name+".count", "how many starts fit into %d seconds is not said; give a count, or leave both out", w.Seconds)
		case w.Count > 0 && w.Seconds == 0:
			w.Seconds = defaultWindow
		}
	}
	if day, month := settings.ExecutionsPerDay, settings.ExecutionsPerMonth; month > 0 && day > month {
		return api.WrongField("executions_per_day", "%d on one day are more than %d in the whole month", day, month)
	}
	return nil
}

// Caps are how many executions of a workspace, and of each of its users, may run at once; zero: any number.
func (s *Service) Caps(workspace string) (running, perUser int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	settings := &s.of(workspace).settings
	return settings.Running, settings.RunningPerUser
}
