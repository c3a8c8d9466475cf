"""The page of an owner's trusted publishers, and of the repos that accept only these."""

from flask import Response, request
from flask_wtf import FlaskForm
from wtforms import RadioField, SelectField, StringField
from wtforms.fields.choices import SelectChoice
from wtforms.validators import DataRequired, InputRequired

from publisher.trusted.issuers import DEFAULT_ISSUERS, Issuer
from publisher.trusted.publishers import ENVIRONMENT_CHARS_MAX, WORKFLOWS, Entered, TrustedPublisher
from publisher.web.pages import snippets
from publisher.web.pages.frame import Frame, errors_shown
from publisher.web.pages.repos import offered, repo_in, repos_of

PROVIDERS = {"github": "GitHub Actions", "gitlab": "GitLab CI/CD"}
ONLY, TOO = "only", "too"
LABEL_ONLY = "label"
_WHAT = "set who publishes"


class PublisherForm(FlaskForm):
    issuer = SelectField("Provider")
    project = StringField(
        "Project",
        [DataRequired("Enter the project.")],
        description="As in its address: OWNER/REPOSITORY on GitHub, GROUP/PROJECT on GitLab.",
    )
    repo = StringField(
        "Prompt",
        description="Name of a prompt, which may be new. Empty: all prompts of this owner.",
    )
    does = SelectField(
        "Its jobs",
        choices=[("publish", "publish, and move labels"), (LABEL_ONLY, "only move labels")],
        default="publish",
    )
    labels = StringField(
        "Labels",
        description="Labels that its jobs may move, such as production, with spaces or commas "
        "between them. Empty: none.",
    )
    workflow = StringField(
        "Workflow file",
        description="On GitHub its name in .github/workflows, on GitLab its path. Empty: "
        f"{WORKFLOWS['github']} on GitHub, {WORKFLOWS['gitlab']} on GitLab.",
    )
    branch = StringField(
        "Branch",
        default="main",
        description="Only jobs on this branch. Empty: any branch or tag, so anyone who can push a "
        "branch can publish.",
    )
    environment = StringField(
        "Environment",
        description=f"Up to {ENVIRONMENT_CHARS_MAX} characters. Empty: jobs of any environment, or "
        "of none.",
    )
    project_id = StringField(
        "Project number",
        description="Blocks a project that takes over the name later. Empty: set by the first job.",
    )


class OnlyForm(FlaskForm):
    """Sets who publishes to a repo: ``who`` is ONLY for trusted publishers alone, TOO for tokens as
    well.
    """

    repo = StringField(
        "Prompt name (may be new)", [DataRequired("Enter the prompt name.")], id="only-repo"
    )
    who = RadioField(validators=[InputRequired("Choose who may publish.")], choices=[ONLY, TOO])


def add_to(frame: Frame) -> None:
    """Adds these pages."""
    frame.add("/publishers", publishers, "GET", "POST")
    frame.add("/publishers/<publisher_id>/remove", remove, "POST")
    frame.add("/publishers/only", only, "POST")


def publishers(frame: Frame, person: str) -> Response:
    owner = frame.chosen(person, _WHAT).owner
    form = _new_form(frame)
    if form.validate_on_submit():
        fields = {name: form[name].data or "" for name in Entered._fields if name in form}
        publishes = form.does.data != LABEL_ONLY
        fields |= {"repo": repo_in(form.repo.data, owner), "publishes": publishes}
        entered = Entered(**fields)
        with errors_shown(form, form.project):
            issuer = frame.service.issuers[form.issuer.data]
            added = frame.service.trusted.add(owner, issuer, entered)
            message = (
                f"{added.project} is a trusted publisher now. Paste its workflow file into the "
                f"project{'; the next push publishes' if publishes else ''}."
            )
            return frame.redirect(frame.owned(f"/publishers?added={added.id}#{added.id}"), message)
    return _show(frame, owner, form, OnlyForm(formdata=None), frame.status_of(form))


def remove(frame: Frame, person: str, publisher_id: str) -> Response:
    owner = frame.chosen(person, _WHAT).owner
    removed = frame.service.trusted.remove(owner, publisher_id)
    message = f"{removed.project} is no longer a trusted publisher for {removed.scope()}."
    return frame.redirect(frame.owned("/publishers"), message)


def only(frame: Frame, person: str) -> Response:
    owner = frame.chosen(person, _WHAT).owner
    form = OnlyForm()
    if form.validate_on_submit():
        repo, is_on = repo_in(form.repo.data, owner), form.who.data == ONLY
        with errors_shown(form, form.repo):
            frame.service.accounts.set_trusted_only(owner, repo, is_on)
            message = "only trusted publishers" if is_on else "tokens and trusted publishers"
            path = frame.owned("/publishers#only")
            return frame.redirect(path, f"{owner}/{repo} accepts {message}.")
    form.repo.errors = [*form.repo.errors, *form.who.errors]
    return _show(frame, owner, _new_form(frame, formdata=None), form, 422)


def _show(frame: Frame, owner: str, form: PublisherForm, only: OnlyForm, status: int) -> Response:
    added = request.args.get("added")
    listed = sorted(frame.service.trusted.of(owner), key=lambda one: one.id != added)
    mine = repos_of(frame.service.settings, owner)
    tokens_refused = frame.service.accounts.trusted_only(owner)
    covered = {publisher.repo for publisher in listed if publisher.publishes}
    every = offered(mine) if "" in covered else []
    return frame.render(
        "publishers.html",
        status,
        form=form,
        only=only,
        offered=offered(mine),
        publishers=[(one, *_provider(frame, one)) for one in listed],
        added=added,
        repos=[
            (repo, repo in tokens_refused, bool({repo, ""} & covered))
            for repo in sorted((covered - {""}).union(tokens_refused, every))
        ],
    )


def _provider(frame: Frame, publisher: TrustedPublisher) -> tuple[str, str, str]:
    """Returns the provider for people, its kind, and the workflow to paste. The latter two are
    empty if this hub no longer trusts it.
    """
    issuer = frame.service.issuers.get(publisher.issuer)
    if issuer is None:
        return publisher.issuer, "", ""
    workflow = snippets.workflow(frame.service.settings.base_url, issuer.kind, publisher)
    return _shown(issuer), issuer.kind, workflow


def _new_form(frame: Frame, **options: None) -> PublisherForm:
    form = PublisherForm(**options)
    form.issuer.choices = [
        SelectChoice(issuer.url, _shown(issuer)) for issuer in frame.service.issuers.values()
    ]
    return form


def _shown(issuer: Issuer) -> str:
    name = PROVIDERS[issuer.kind]
    return name if issuer in DEFAULT_ISSUERS else f"{name} ({issuer.url})"
