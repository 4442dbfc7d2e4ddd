package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/apimachinery/pkg/util/runtime"
)

// objects reads Kubernetes manifests as the API server does that is told to be strict: an unknown or repeated field is an error.
func objects(t *testing.T, name string) (list []runtime.Object) {
	t.Helper()
	scheme := runtime.NewScheme()
	clientgoscheme.Must(corev1.AddToScheme(scheme))
	clientgoscheme.Must(appsv1.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	text, err := os.ReadFile(filepath.Join("..", "kubernetes", name))
	check(t, err)
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		object, _, err := decoder.Decode(document, nil, nil)
		check(t, err)
		list = append(list, object)
	}
	return list
}

// manifests are those of one server.
func manifests(t *testing.T) (sets []*appsv1.StatefulSet, services []*corev1.Service) {
	t.Helper()
	for _, object := range objects(t, "tandem.yaml") {
		switch o := object.(type) {
		case *appsv1.StatefulSet:
			sets = append(sets, o)
		case *corev1.Service:
			services = append(services, o)
		default:
			t.Errorf("the test does not know %T", o)
		}
	}
	return sets, services
}

// server is the one container of the manifests.
func server(t *testing.T) (*appsv1.StatefulSet, corev1.Container) {
	t.Helper()
	sets, _ := manifests(t)
	if len(sets) != 1 || len(sets[0].Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("there are %d sets", len(sets))
	}
	return sets[0], sets[0].Spec.Template.Spec.Containers[0]
}

// The manifests are valid, and their parts fit each other and the image.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	set, c := server(t)
	_, services := manifests(t)
	labels := set.Spec.Template.Labels
	if *set.Spec.Replicas != 1 || !maps.Equal(set.Spec.Selector.MatchLabels, labels) || set.Spec.ServiceName != services[0].Name || !maps.Equal(services[0].Spec.Selector, labels) {
		t.Errorf("the set, its pods and its service do not fit: %+v", set.Spec)
	}
	pod := set.Spec.Template.Spec
	checkPod(t, pod)
	how := howToRun("")
	if services[0].Spec.Ports[0].TargetPort.StrVal != c.Ports[0].Name {
		t.Errorf("the port is %+v", c.Ports[0])
	}
	mounts := mountsOf(c)
	if _, ok := how.Volumes["/data"]; !ok || mounts["/data"] != set.Spec.VolumeClaimTemplates[0].Name || mounts["/tmp"] != pod.Volumes[0].Name {
		t.Errorf("it mounts %v", mounts)
	}
}

// mountsOf is what a container mounts where.
func mountsOf(c corev1.Container) map[string]string {
	mounts := map[string]string{}
	for _, m := range c.VolumeMounts {
		mounts[m.MountPath] = m.Name
	}
	return mounts
}

// checkPod fails unless a pod fits the image: its one container may no more than it needs, is probed, has time to end and says what it uses.
func checkPod(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	c, how := pod.Containers[0], howToRun("")
	if s := pod.SecurityContext; fmt.Sprintf("%d:%d", *s.RunAsUser, *s.RunAsGroup) != how.User || !*s.RunAsNonRoot || *s.FSGroup != user {
		t.Errorf("it runs as %+v", s)
	}
	if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("it may %+v", s)
	}
	port := c.Ports[0]
	if _, ok := how.ExposedPorts[fmt.Sprintf("%d/tcp", port.ContainerPort)]; !ok {
		t.Errorf("the port is %+v", port)
	}
	for name, probe := range map[string]*corev1.Probe{"/healthz live": c.LivenessProbe, "/readyz ready": c.ReadinessProbe, "/healthz started": c.StartupProbe} {
		path, _, _ := strings.Cut(name, " ")
		if probe == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != port.Name {
			t.Errorf("the probe %s is %+v", name, probe)
		}
	}
	if grace := graceOf(t, c.Args); time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second < grace+20*time.Second {
		t.Errorf("the pod has %ds to end, and what runs %v", *pod.TerminationGracePeriodSeconds, grace)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().Value() < 128<<20 || c.Resources.Limits.Memory().Cmp(*c.Resources.Requests.Memory()) <= 0 {
		t.Errorf("it asks for %+v", c.Resources)
	}
}

// graceOf is how long the server gives what runs.
func graceOf(t *testing.T, args []string) time.Duration {
	t.Helper()
	i := slices.Index(args, "--grace")
	if i < 0 {
		t.Fatalf("no --grace in %q", args)
	}
	grace, err := time.ParseDuration(args[i+1])
	check(t, err)
	return grace
}

// The compose file is valid, and fits the image.
func TestCompose(t *testing.T) {
	t.Parallel()
	o, err := cli.NewProjectOptions([]string{filepath.Join("..", "compose", "compose.yaml")}, cli.WithEnv([]string{"TANDEM_IMAGE=tandem:test"}), cli.WithName("tandem"), cli.WithInterpolation(true))
	check(t, err)
	p, err := o.LoadProject(context.WithoutCancel(t.Context()))
	check(t, err)
	s, err := p.GetService("tandem")
	check(t, err)
	how := howToRun("")
	if s.Image != "tandem:test" || s.StopSignal != how.StopSignal || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.Command[0] != how.Cmd[0] {
		t.Errorf("the service is %+v", s)
	}
	if grace := graceOf(t, s.Command); time.Duration(*s.StopGracePeriod) < grace+20*time.Second {
		t.Errorf("it has %v to stop, and what runs %v", s.StopGracePeriod, grace)
	}
	if port := s.Ports[0]; port.HostIP != "127.0.0.1" || how.ExposedPorts[strconv.Itoa(int(port.Target))+"/tcp"] != struct{}{} {
		t.Errorf("the port is %+v", port)
	}
	if v := s.Volumes[0]; v.Type != types.VolumeTypeVolume || v.Target != "/data" || len(p.Volumes) != 1 {
		t.Errorf("the volume is %+v", v)
	}
	if test := s.HealthCheck.Test; test[0] != "CMD" || test[1] != how.Entrypoint[0] {
		t.Errorf("its health is checked with %q, and there is no shell", test)
	}
}

// The manifests of a cluster are valid: two servers and two workers that have the same key, the same database and the same task queue, and files that all of them see.
func TestKubernetes_Cluster(t *testing.T) {
	t.Parallel()
	var service *corev1.Service
	claims, sets := map[string]*corev1.PersistentVolumeClaim{}, map[string]*appsv1.Deployment{}
	for _, object := range objects(t, "cluster.yaml") {
		switch o := object.(type) {
		case *appsv1.Deployment:
			sets[o.Name] = o
		case *corev1.Service:
			service = o
		case *corev1.PersistentVolumeClaim:
			claims[o.Name] = o
		default:
			t.Errorf("the test does not know %T", o)
		}
	}
	shared := map[string][]string{}
	for name, args := range map[string][]string{"tandem-server": {"serve", "--engine", "temporal"}, "tandem-worker": {"worker"}} {
		set := sets[name]
		pod := set.Spec.Template.Spec
		checkPod(t, pod)
		c := pod.Containers[0]
		if *set.Spec.Replicas != 2 || !maps.Equal(set.Spec.Selector.MatchLabels, set.Spec.Template.Labels) || !slices.Equal(c.Args[:len(args)], args) {
			t.Errorf("%s: %+v", name, set.Spec)
		}
		if asked := maps.Equal(service.Spec.Selector, set.Spec.Template.Labels); asked != (name == "tandem-server") {
			t.Errorf("%s is asked by the service: %v", name, asked)
		}
		for _, v := range pod.Volumes {
			if v.PersistentVolumeClaim != nil && (claims[v.PersistentVolumeClaim.ClaimName] == nil || mountsOf(c)["/data/files"] != v.Name) {
				t.Errorf("%s: the files are %+v", name, v)
			}
		}
		for _, e := range c.Env {
			shared[e.Name] = append(shared[e.Name], fmt.Sprint(e.Value, e.ValueFrom))
		}
	}
	for _, name := range []string{"TANDEM_DATABASE", "TANDEM_MASTER_KEY", "TANDEM_TEMPORAL_ADDRESS", "TANDEM_TASK_QUEUE", "TANDEM_PUBLIC_URL"} {
		if v := shared[name]; len(v) != 2 || v[0] != v[1] {
			t.Errorf("%s is %v", name, v)
		}
	}
	for name, want := range map[string]int{"TANDEM_PEER_URL": 1, "TANDEM_TRUSTED_PROXIES": 1, "TANDEM_RELEASE": 1} {
		if len(shared[name]) != want {
			t.Errorf("%s is %v", name, shared[name])
		}
	}
	if _, err := netip.ParsePrefix(valueOf(sets["tandem-server"], "TANDEM_TRUSTED_PROXIES")); err != nil {
		t.Errorf("who forwards is not believed: %v", err)
	}
	worker := sets["tandem-worker"]
	if _, tag, _ := strings.Cut(worker.Spec.Template.Spec.Containers[0].Image, ":"); valueOf(worker, "TANDEM_RELEASE") != tag {
		t.Errorf("the release is %q, and the image has the tag %q", valueOf(worker, "TANDEM_RELEASE"), tag)
	}
}

// valueOf is what the container of a deployment has as a variable.
func valueOf(set *appsv1.Deployment, name string) string {
	for _, e := range set.Spec.Template.Spec.Containers[0].Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

// checkBelieved fails unless the servers of a compose file are the ones that are believed about where a request comes from: they forward to each other.
func checkBelieved(t *testing.T, p *types.Project) {
	t.Helper()
	subnet, err := netip.ParsePrefix(p.Networks["default"].Ipam.Config[0].Subnet)
	check(t, err)
	var addresses []string
	for _, name := range []string{"server-a", "server-b"} {
		s, err := p.GetService(name)
		check(t, err)
		at, err := netip.ParseAddr(s.Networks["default"].Ipv4Address)
		check(t, err)
		if !subnet.Contains(at) {
			t.Errorf("%s has the address %v, and the network is %v", name, at, subnet)
		}
		addresses = append(addresses, at.String())
	}
	for _, name := range []string{"server-a", "server-b"} {
		s, err := p.GetService(name)
		check(t, err)
		if got := s.Environment["TANDEM_TRUSTED_PROXIES"]; got == nil || *got != strings.Join(addresses, ",") {
			t.Errorf("%s believes %v, and the servers are %v", name, got, addresses)
		}
	}
}

// The compose file of a cluster is valid, and its parts fit each other and the image.
func TestCompose_Cluster(t *testing.T) {
	t.Parallel()
	o, err := cli.NewProjectOptions([]string{filepath.Join("..", "compose", "cluster.yaml")}, cli.WithName("tandem"), cli.WithInterpolation(true),
		cli.WithEnv([]string{"TANDEM_IMAGE=tandem:test", "POSTGRES_PASSWORD=secret", "TANDEM_MASTER_KEY=key", "TANDEM_TOKEN=token", "TANDEM_RELEASE=r2"}))
	check(t, err)
	p, err := o.LoadProject(context.WithoutCancel(t.Context()))
	check(t, err)
	how := howToRun("")
	peers := map[string]bool{}
	for name, args := range map[string][]string{"server-a": {"serve", "--engine", "temporal"}, "server-b": {"serve", "--engine", "temporal"}, "worker-a": {"worker"}, "worker-b": {"worker"}} {
		s, err := p.GetService(name)
		check(t, err)
		if s.Image != "tandem:test" || s.StopSignal != how.StopSignal || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.Command[:len(args)], args) {
			t.Errorf("%s is %+v", name, s)
		}
		if grace := graceOf(t, s.Command); time.Duration(*s.StopGracePeriod) < grace+20*time.Second {
			t.Errorf("%s has %v to stop, and what runs %v", name, s.StopGracePeriod, grace)
		}
		for variable, want := range map[string]string{"TANDEM_DATABASE": "postgres://tandem:secret@postgres:5432/tandem", "TANDEM_MASTER_KEY": "key", "TANDEM_TEMPORAL_ADDRESS": "temporal:7233", "TANDEM_TASK_QUEUE": "tandem", "TANDEM_RELEASE": "r2"} {
			if got := s.Environment[variable]; got == nil || *got != want {
				t.Errorf("%s: %s is %v", name, variable, got)
			}
		}
		if v := s.Volumes[0]; v.Source != "data" || v.Target != "/data" {
			t.Errorf("the volume of %s is %+v", name, v)
		}
		if peer := s.Environment["TANDEM_PEER_URL"]; (peer != nil) != (args[0] == "serve") {
			t.Errorf("%s is reached at %v", name, peer)
		} else if peer != nil {
			peers[*peer] = *peer == "http://"+name+":8080" && len(s.Ports) == 1 && s.Ports[0].HostIP == "127.0.0.1"
		}
	}
	checkBelieved(t, p)
	if !peers["http://server-a:8080"] || !peers["http://server-b:8080"] {
		t.Errorf("servers reach each other at %v", peers)
	}
	for _, name := range []string{"postgres", "temporal"} {
		if _, err := p.GetService(name); err != nil {
			t.Error(err)
		}
	}
}
