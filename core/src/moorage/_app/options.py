"""Everything that can be said on the command line of `moorage serve`, with Triton's names."""

from __future__ import annotations

from attrs import frozen

from moorage._app.flags import Group

_repository = Group("Model repositories")
_server = Group("Server")
_http = Group("HTTP")
_grpc = Group("gRPC")
_metrics = Group("Metrics")
_logging = Group("Logging")
_backends = Group("Backends")
_plugins = Group("Plugins")
_accepted = Group("Accepted and without effect")
_off = Group("Accepted if switched off")

LAST_PORT = 65535
COMPRESSION_LEVELS = ("none", "low", "medium", "high")


@frozen
class ServerOptions:
    """The options of a server. Each attribute is a flag of `moorage serve` and an environment variable `MOORAGE_...`."""

    model_repository: tuple[str, ...] = _repository.many(
        "Folder or URL of a model repository; may be given several times.", aliases=("--model-store",), metavar="PATH"
    )
    model_control_mode: str = _repository(
        "none",
        "Which models are loaded, and when: none (all, at start), explicit (when a client asks), poll (what lies in the "
        "repositories, which are watched), on_demand (at the first request), or a mode that a plugin adds.",
        metavar="MODE",
        lower=True,
    )
    load_model: tuple[str, ...] = _repository.many(
        "A model to load at start in mode explicit or on_demand; may be given several times, * alone means all.", metavar="NAME"
    )
    max_loaded_models: int = _repository(
        0, "How many models mode on_demand keeps loaded, those that were asked last; 0 for any number."
    )
    repository_poll_secs: float = _repository(15.0, "Seconds between two looks at the repositories in mode poll.")
    repository_settle_secs: float = _repository(
        2.0, "Seconds that the files of a model or version must be unchanged in mode poll before they are acted upon."
    )
    model_config_name: str = _repository(
        "", "Use configs/NAME.pbtxt of a model, where there is one, instead of config.pbtxt.", metavar="NAME"
    )
    model_namespacing: bool = _repository(False, "Serve models of the same name from different repositories.")
    disable_auto_complete_config: bool = _repository(
        False, "Do not fill in what configurations leave open; each model then needs a complete one.", switch=True
    )
    strict_model_config: bool = _repository(False, "Older spelling of --disable-auto-complete-config.")
    substitute_variables: bool = _repository(
        False, "Replace ${NAME} in configurations by the environment variable NAME, as one value.", switch=True
    )
    exit_on_error: bool = _repository(True, "End if a model cannot be loaded at start.")
    allow_model_override: bool = _repository(
        False, "Let clients bring a model's files along with a load; they can be code that runs with the server's rights."
    )
    strict_readiness: bool = _repository(True, "Triton's flag: false is another word for --readiness=none.")
    readiness: str = _repository(
        "all",
        "Which models have to serve for the server to be ready: all that are wanted, those of the start (initial), or none.",
        choices=("all", "initial", "none"),
    )
    required_models: tuple[str, ...] = _repository.many(
        "Be ready only while these models serve, too; separated by commas, may be given several times.", metavar="NAME,NAME"
    )
    model_load_thread_count: int = _repository(4, "How many versions are loaded at the same time.", least=1)
    model_load_retry_count: int = _repository(0, "How often a failed load is tried again.")
    model_cache_dir: str = _repository(
        "",
        "Folder that keeps files of remote repositories, so that a restart downloads only what has changed; servers of one "
        "machine may share it.",
        metavar="PATH",
    )
    model_cache_size: str = _repository(
        "50GiB", "How much --model-cache-dir may keep: bytes, or a number with a unit, such as 500MB or 10GiB.", metavar="SIZE"
    )

    id: str = _server("triton", "The server's name in its metadata.", metavar="NAME")
    shutdown_grace_secs: int = _server(
        0, "How long the server, told to end, is not ready any more but goes on serving before it refuses new requests."
    )
    exit_timeout_secs: int = _server(30, "How long running requests may take to finish when the server is told to end.")

    allow_http: bool = _http(True, "Serve HTTP.")
    http_address: str = _http("127.0.0.1", "Address to listen on; 0.0.0.0 opens the server to the network.", metavar="ADDRESS")
    http_port: int = _http(8000, "Port for HTTP; 0 takes a free one.", most=LAST_PORT)
    reuse_http_port: bool = _http(False, "Let several servers listen on the same port.")
    http_max_input_size: int = _http(
        64 << 20, "Greatest size of a request's body in bytes, also after decompression.", least=1, most=1 << 40
    )
    http_header_forward_pattern: str = _http(
        "", "Headers whose names match this regular expression become request parameters.", metavar="REGEX"
    )
    http_json_halves: bool = _http(False, "Take and give FP16 and BF16 tensors as JSON numbers, too, not only in binary form.")
    http_restricted_api: tuple[str, ...] = _http.many(
        "Groups of endpoints that need a header: APIS:KEY=VALUE. A VALUE @FILE is what the file holds, also when it changes.",
        metavar="APIS:KEY=VALUE",
    )

    allow_grpc: bool = _grpc(True, "Serve gRPC.")
    grpc_address: str = _grpc("127.0.0.1", "Address to listen on; 0.0.0.0 opens the server to the network.", metavar="ADDRESS")
    grpc_port: int = _grpc(8001, "Port for gRPC; 0 takes a free one.", most=LAST_PORT)
    reuse_grpc_port: bool = _grpc(False, "Let several servers listen on the same port.")
    grpc_header_forward_pattern: str = _grpc(
        "", "Metadata keys that match this regular expression become request parameters.", metavar="REGEX"
    )
    grpc_restricted_protocol: tuple[str, ...] = _grpc.many(
        "Groups of calls that need metadata: PROTOCOLS:KEY=VALUE, sent as triton-grpc-protocol-KEY. VALUE may be @FILE, too.",
        metavar="PROTOCOLS:KEY=VALUE",
    )
    grpc_infer_response_compression_level: str = _grpc("none", "How hard responses are compressed.", choices=COMPRESSION_LEVELS)
    grpc_use_ssl: bool = _grpc(False, "Serve gRPC over TLS.")
    grpc_use_ssl_mutual: bool = _grpc(False, "Serve gRPC over TLS and ask clients for certificates.")
    grpc_server_cert: str = _grpc("", "PEM file of the server's certificate.", metavar="FILE")
    grpc_server_key: str = _grpc("", "PEM file of the server's key.", metavar="FILE")
    grpc_root_cert: str = _grpc("", "PEM file of the certificates that clients are checked against.", metavar="FILE")
    grpc_keepalive_time: int = _grpc(7_200_000, "Milliseconds between keepalive pings.")
    grpc_keepalive_timeout: int = _grpc(20_000, "Milliseconds to wait for the answer to a keepalive ping.")
    grpc_keepalive_permit_without_calls: bool = _grpc(False, "Send keepalive pings without calls in flight, too.")
    grpc_http2_max_pings_without_data: int = _grpc(2, "Pings that may be sent without data in between; 0 for any number.")
    grpc_http2_min_recv_ping_interval_without_data: int = _grpc(
        300_000, "Milliseconds that a client must let pass between pings without data."
    )
    grpc_http2_max_ping_strikes: int = _grpc(2, "Bad pings after which a connection is closed; 0 for any number.")
    grpc_max_connection_age: int = _grpc(0, "Milliseconds that a connection may live; 0 for ever.")
    grpc_max_connection_age_grace: int = _grpc(0, "Milliseconds that calls may go on after that age; 0 for ever.")

    allow_metrics: bool = _metrics(True, "Serve Prometheus metrics.")
    metrics_address: str = _metrics("", "Address for metrics; that of HTTP if not given.", metavar="ADDRESS")
    metrics_port: int = _metrics(8002, "Port for metrics; 0 takes a free one.", most=LAST_PORT)
    metrics_config: tuple[str, ...] = _metrics.many(
        "A setting of the metrics: counter_latencies=false leaves the durations out.", metavar="KEY=VALUE"
    )
    allow_cpu_metrics: bool = _metrics(True, "Show the use of processor and memory.")

    log_verbose: int = _logging(0, "Verbose messages: 0 for none.", level=True)
    log_info: bool = _logging(True, "Log what happens.")
    log_warning: bool = _logging(True, "Log warnings.")
    log_error: bool = _logging(True, "Log errors.")
    log_format: str = _logging("default", "Form of the messages.", choices=("default", "ISO8601", "json"))
    log_file: str = _logging("", "File to log to instead of standard error.", metavar="FILE")

    backend_config: tuple[str, ...] = _backends.many(
        "A setting of a backend, BACKEND,KEY=VALUE, or of all, KEY=VALUE.", metavar="BACKEND,KEY=VALUE"
    )

    block_plugin: tuple[str, ...] = _plugins.many("A plugin not to use, by the name of its entry point.", metavar="NAME")

    http_thread_count: str = _accepted.inert("HTTP is served by one event loop.")
    grpc_infer_thread_count: str = _accepted.inert("One thread reads gRPC requests; models run on threads of their own.")
    grpc_infer_allocation_pool_size: str = _accepted.inert("Requests are not pooled.")
    grpc_max_response_pool_size: str = _accepted.inert("Responses are not pooled.")
    backend_directory: str = _accepted.inert("Backends are Python packages.")
    cache_directory: str = _accepted.inert("Caches are Python packages.")
    repoagent_directory: str = _accepted.inert("Repository agents are Python packages.")
    pinned_memory_pool_byte_size: str = _accepted.inert("There is no pool of pinned memory.")
    cuda_memory_pool_byte_size: tuple[str, ...] = _accepted.many("There is no pool of CUDA memory.", inert=True)
    cuda_virtual_address_size: tuple[str, ...] = _accepted.many("There is no pool of CUDA memory.", inert=True)
    min_supported_compute_capability: str = _accepted.inert("The framework decides.")
    buffer_manager_thread_count: str = _accepted.inert("Buffers are not copied by threads of their own.")
    enable_peer_access: str = _accepted.inert("The framework decides.")
    model_load_gpu_limit: tuple[str, ...] = _accepted.many("Loads do not look at the memory of GPUs.", inert=True)
    allow_gpu_metrics: str = _accepted.inert("There are no GPU metrics yet.")
    metrics_interval_ms: str = _accepted.inert("Metrics are computed when they are asked for.")
    host_policy: tuple[str, ...] = _accepted.many("Host policies are not applied.", inert=True)
    cache_config: tuple[str, ...] = _accepted.many("There is no response cache yet: every request runs.", inert=True)
    response_cache_byte_size: str = _accepted.inert("There is no response cache yet: every request runs.")
    rate_limit_resource: tuple[str, ...] = _accepted.many("There is no rate limiter yet.", inert=True)
    trace_config: tuple[str, ...] = _accepted.many("Nothing is traced yet.", inert=True)
    trace_file: str = _accepted.inert("Nothing is traced yet.")
    trace_level: tuple[str, ...] = _accepted.many("Nothing is traced yet.", inert=True)
    trace_rate: str = _accepted.inert("Nothing is traced yet.")
    trace_count: str = _accepted.inert("Nothing is traced yet.")
    trace_log_frequency: str = _accepted.inert("Nothing is traced yet.")

    rate_limit: str = _off("off", "There is no rate limiter yet.", choices=("off",))
    allow_client_shm: str = _off("false", "Clients cannot use shared memory yet.", choices=("false",))
    allow_sagemaker: str = _off("false", "There are no endpoints for SageMaker.", choices=("false",))
    allow_vertex_ai: str = _off("false", "There are no endpoints for Vertex AI.", choices=("false",))

    @property
    def auto_complete(self) -> bool:
        """Whether configurations are completed."""
        return not (self.disable_auto_complete_config or self.strict_model_config)
