"""Reads exports and APIs of other vendors' prompts as histories. Executes nothing of them.

Each vendor has a module, which is loaded on demand. It has:

- ``TITLE``: the vendor's name as people write it.
- ``read_histories(documents)``: the histories in the documents of an export, in any order. A
  document of another vendor, or a broken one, is a Rejection with its place.
- ``API_URL``, and ``KEYS``: the environment variables with the credentials. ``OPTIONAL_KEYS``:
  others that not all need. ``headers(keys)``: sent with each request (an unset variable is empty).
  ``download(api)``: the API's answers as such documents.
"""

MODULES = {
    "langfuse": "moving.vendors.langfuse",
    "langsmith": "moving.vendors.langsmith",
}
