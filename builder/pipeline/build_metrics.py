"""The metrics of builds."""

from builder.model.metrics import Counter, Gauge, Histogram

# Upper bounds, in seconds; longer builds are counted only in the total.
BUILD_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)

PUBLICATIONS_LATE = Counter(
    "hub_publications_late_total",
    "Publications and other changes that were saved, but did not reach readers in time.",
)
BUILDS = Counter("hub_builds_total", "Builds of the site.", result=("succeeded", "failed"))
BUILD_SECONDS = Histogram(
    "hub_build_duration_seconds", "Time of a build that succeeded.", BUILD_BUCKETS
)
BUILD_FILES = Counter(
    "hub_build_files_total", "Files of the site that builds changed.", change=("written", "removed")
)
BUILD_FAILURES = Gauge("hub_build_failures_in_row", "Failed builds since the last that succeeded.")
BUILD_BEHIND = Gauge(
    "hub_build_behind_seconds", "Age of the oldest change that lists and search do not have."
)
BUILD_WAITING = Gauge("hub_build_waiting_prompts", "Prompts that wait for the next build.")
PROMPTS = Gauge("hub_prompts", "Prompts on the site, as of the last build of this process.")
VERSIONS = Gauge("hub_versions", "Versions of these prompts.")
SERIAL = Gauge("hub_serial", "Publications that the lists include.")
