"""The write side: takes a prompt, says what is wrong with it, or stores it for good.

``drafts`` says whether a publication is well-formed, ``resolve`` decides its metadata,
``durable`` puts it on the disk behind the protocol of ``store``, and ``publish`` is the glue;
``importers`` brings other collections in by the same way. May import builder.
"""
