import os

print(os.environ)
