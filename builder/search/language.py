"""Knowledge of words beyond the catalogue: words that say little, and words that mean the same.
Data.
"""

from builder.text.words import words

# Function words of English, and the words that people put around their query.
_STOP = """
a about after all also am an and any are as at be because been before being but by can could did do
does doing don't during each for from further get gets give gives got had has have having he her
here hers him his how i if in into is isn't it it's its itself just let like me might my myself no
nor not of off on once only or other our ours out over own please same shall she should so some
such than that the their theirs them then there these they this those through to too under until up
upon us very want wants was we were what when where which while who whom why will with would write
writes writing you your yours
"""
# Words so frequent in English, and in requests to a model, that they distinguish few prompts.
_FREQUENT = """
able act add ai another answer answers ask back base based best better big build building chatgpt
choose come complex create creates day different every find first fix go good gpt great help helps
idea ideas improve keep kind know last learn llm long look make makes making many model more most
much need needs new number old one open part people pick place possible potential prompt prompts
put question right say see set short show simple start tell thing things think time top topic try
turn two use used using way well work year
"""
# Each line: a word, and words that prompts for the same purpose use instead. Collected by hand:
# occupations with several names, abbreviations, and tasks that people and titles name differently.
_SYNONYMS = """
accountant: bookkeeper accounting
ad: advertisement advertising
ads: advertisement advertising
advertisement: ad ads advertising
attorney: lawyer legal
barrister: lawyer legal
bug: error debug defect
bugs: errors debug defects
chef: cook recipe
coach: trainer mentor
coder: programmer developer
coding: programming code
comedian: comic humor
copywriting: copywriter advertising
crypto: cryptocurrency bitcoin
cryptocurrency: crypto bitcoin
cv: resume
dietician: nutritionist diet
dietitian: nutritionist diet
doctor: physician medical
error: mistake bug
errors: mistakes bugs
film: movie
gym: fitness workout
improve: enhance optimize refine
instructor: teacher tutor
job: career hiring
k8s: kubernetes
kids: children
lawyer: attorney legal
lyrics: song lyricist
meditation: mindfulness
mistake: error
mistakes: errors
movie: film
music: song
novel: story fiction
paraphrase: rewrite rephrase
photo: image photograph photography
picture: image photo
physician: doctor medical
poem: poetry poet
postgres: postgresql sql
proofread: grammar spelling
proofreader: grammar spelling
proofreading: grammar spelling
psychiatrist: psychologist therapist mental
psychotherapist: psychologist therapist therapy mental
realtor: estate property
recruiter: hiring recruitment hr
regex: regexp expression
regexp: regex expression
rephrase: rewrite paraphrase
resume: cv
rewrite: rephrase paraphrase
slides: presentation powerpoint
song: music lyrics
startup: entrepreneur business
summarise: summary summarize
summarize: summary
summary: summarize
teacher: tutor instructor educator
therapist: psychologist therapy counselor
therapy: therapist psychologist
translate: translator translation
tutor: teacher
vacation: travel holiday
workout: fitness exercise gym
"""
# A language that the answer should be in says nothing about the prompt: "in Spanish". Accents are
# removed already. The pattern means the same in Python and in JavaScript.
SPOKEN = (
    "(?<![a-z0-9])(?:in|into|en|auf|em) (?:arabic|chinese|dutch|english|french|german|hindi|"
    "italian|japanese|korean|polish|portuguese|russian|spanish|swedish|turkish|ukrainian|"
    "allemand|anglais|"
    "espagnol|francais|italien|portugais|aleman|espanol|frances|ingles|italiano|portugues|deutsch|"
    "englisch|franzosisch|italienisch|russisch|spanisch)(?![a-z0-9])"
)


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.stem for word in words(text))


def _read_synonyms(lines: str) -> dict[str, tuple[str, ...]]:
    found = {}
    for line in lines.split("\n"):
        word, _, others = line.partition(": ")
        if others:
            (key,) = _stems(word)
            found[key] = tuple(one.stem for one in words(others))
    return found


STOP_STEMS = _stems(_STOP)
FREQUENT_STEMS = _stems(_FREQUENT)
SYNONYMS = _read_synonyms(_SYNONYMS)
