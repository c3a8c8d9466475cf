"""What other vendors' exports and APIs say of their prompts, as histories. Executes nothing.

One module a vendor, which is loaded when it is asked for. Each has:

- ``TITLE``: the vendor's name as people write it.
- ``read_histories(documents)``: the histories in the documents of an export, in any order. A
  document that is none of this vendor's, or is broken, is a Rejection with its place; one that
  belongs to the vendor and is no prompt may be PassedOver.
- where its exports need it, ``read_source(path)`` in the place of ``documents.read_documents``.
- where the vendor has an API, ``API_URL`` (None where each customer has their own), ``KEYS``: the
  environment variables with the credentials, ``OPTIONAL_KEYS``, if there are others that not all
  need, ``headers(keys)``: what is sent with each request (a variable that is not set is empty), and
  ``download(api)``, which keeps the API's answers as such documents.
"""

MODULES = {
    "github-models": "moving.vendors.github_models",
    "langfuse": "moving.vendors.langfuse",
    "langsmith": "moving.vendors.langsmith",
    "openai": "moving.vendors.openai",
    "opik": "moving.vendors.opik",
    "promptlayer": "moving.vendors.promptlayer",
}
