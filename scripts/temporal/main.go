// Command temporal is a Temporal server for tests: all its services in one process, on the loopback interface, with its
// state in one SQLite file, so that it can be killed and started again. It is a module of its own, because nothing of it
// may be part of Tandem. scripts/temporal.sh builds and starts it.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

const (
	loopback    = "127.0.0.1"
	clusterName = "active"
	shards      = 4
)

func main() {
	file := flag.String("file", "", "the SQLite file of its state, made if it is missing")
	port := flag.Int("port", 0, "the port that clients connect to; 0: one that is free")
	ready := flag.String("ready", "", "a file that the address is written into when clients can connect")
	namespace := flag.String("namespace", "default", "a namespace that there shall be")
	verbose := flag.Bool("verbose", false, "log what the server does")
	flag.Parse()
	if err := serve(*file, *port, *namespace, *ready, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "temporal:", err)
		os.Exit(1)
	}
}

// serve runs the server until it is told to stop.
func serve(file string, port int, namespace, ready string, verbose bool) error {
	if file == "" {
		return errors.New("-file is needed")
	}
	ports, err := freePorts(8)
	if err != nil {
		return err
	}
	if port == 0 {
		port = ports[7]
	}
	cfg := configured(file, port, ports)
	if err := prepare(cfg, file, namespace); err != nil {
		return err
	}
	level := "error" // for whoever asks why it has died
	if verbose {
		level = "info"
	}
	logger := log.NewZapLogger(log.BuildZapLogger(log.Config{Stdout: true, Level: level}))
	server, err := temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithLogger(logger),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithDynamicConfigClient(settings()),
	)
	if err != nil {
		return fmt.Errorf("make the server: %w", err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	if err := server.Start(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if ready != "" {
		if err := announce(cfg.PublicClient.HostPort, namespace, ready); err != nil {
			return err
		}
	}
	<-stop
	return server.Stop()
}

// announce writes the address into a file as soon as everything answers there.
func announce(address, namespace, file string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		c, err := client.DialContext(ctx, client.Options{HostPort: address, Namespace: namespace, Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = answers(ctx, c)
			c.Close()
		}
		if err == nil {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the server cannot be reached: %w", err)
		}
	}
	if err := os.WriteFile(file+".new", []byte(address+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// answers asks each of the services and each shard of the histories. The frontend alone would answer earlier.
func answers(ctx context.Context, c client.Client) error {
	if _, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{}); err != nil {
		return err
	}
	if _, err := c.DescribeTaskQueue(ctx, "ready", enumspb.TASK_QUEUE_TYPE_WORKFLOW); err != nil {
		return err
	}
	for i := range 8 * shards {
		_, err := c.DescribeWorkflowExecution(ctx, "ready-"+strconv.Itoa(i), "")
		if _, missing := errors.AsType[*serviceerror.NotFound](err); !missing {
			return fmt.Errorf("ask for a workflow that does not exist: %w", err)
		}
	}
	return nil
}

// settings are what tests need: searching sees search attributes at once, and one client may ask as often as it likes.
func settings() dynamicconfig.StaticClient {
	always := func(value any) []dynamicconfig.ConstrainedValue {
		return []dynamicconfig.ConstrainedValue{{Value: value}}
	}
	return dynamicconfig.StaticClient{
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): always(true),
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():      always(100_000),
		dynamicconfig.FrontendRPS.Key():                             always(100_000),
	}
}

// prepare makes the tables and the namespace, unless they are there.
func prepare(cfg *config.Config, file, namespace string) error {
	database := cfg.Persistence.DataStores[sqliteplugin.PluginName].SQL
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		if err := sqlite.SetupSchema(database); err != nil {
			return fmt.Errorf("make the tables: %w", err)
		}
	} else if err := forgetMembers(file); err != nil {
		return fmt.Errorf("forget who was killed: %w", err)
	}
	wanted, err := sqlite.NewNamespaceConfig(clusterName, namespace, false, map[string]enumspb.IndexedValueType{})
	if err != nil {
		return fmt.Errorf("describe the namespace: %w", err)
	}
	if err := sqlite.CreateNamespaces(database, wanted); err != nil {
		return fmt.Errorf("make the namespace: %w", err)
	}
	return nil
}

// forgetMembers forgets the services of a process that was killed. The cluster would wait for them for most of a minute.
func forgetMembers(file string) error {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return err
	}
	_, err = db.Exec(`DELETE FROM cluster_membership`)
	return errors.Join(err, db.Close())
}

// configured is a cluster of one process: the frontend on the given port, the other services on those that were free.
func configured(file string, port int, free []int) *config.Config {
	address := net.JoinHostPort(loopback, strconv.Itoa(port))
	service := func(grpc, membership int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: grpc, MembershipPort: membership, BindOnLocalHost: true}}
	}
	cfg := &config.Config{
		Services: map[string]config.Service{
			string(primitives.FrontendService): service(port, free[0]),
			string(primitives.HistoryService):  service(free[1], free[2]),
			string(primitives.MatchingService): service(free[3], free[4]),
			string(primitives.WorkerService):   service(free[5], free[6]),
		},
		Persistence: config.Persistence{
			DefaultStore: sqliteplugin.PluginName, VisibilityStore: sqliteplugin.PluginName, NumHistoryShards: shards,
			DataStores: map[string]config.DataStore{sqliteplugin.PluginName: {SQL: &config.SQL{
				PluginName: sqliteplugin.PluginName, DatabaseName: file,
				ConnectAttributes: map[string]string{"mode": "rwc", "_journal_mode": "wal", "_synchronous": "normal"},
			}}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: clusterName, CurrentClusterName: clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		PublicClient:        config.PublicClient{HostPort: address},
		Archival: config.Archival{
			History: config.HistoryArchival{State: "disabled"}, Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
	}
	cfg.Global.Membership = config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: loopback}
	return cfg
}

// freePorts finds ports that nobody listens on, and that the system gives to nobody by itself: whoever connects somewhere meanwhile would take
// one of those, and the server needs them in a moment, and again when it was killed.
func freePorts(n int) ([]int, error) {
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(20_000+rand.IntN(12_000))))
		if err != nil && tries < 1000 {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
