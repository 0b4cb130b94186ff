"""What pages without a parcel say, in lower case, split by bars."""

from __future__ import annotations

#: Sites that doubt us, or have had enough of us.
CAPTCHA = (
    "captcha|verify you are human|are you human|are you a robot|not a robot|unusual traffic|checking your browser"
    "|incapsula incident|access denied|request blocked|bot detection|automated access|security check"
    "|attention required|verifying your browser|request unsuccessful|just a moment|pardon our interruption"
    "|requested url was rejected|request rejected|too many requests|exceeded the maximum number of|over limit"
    "|overlimit|temporarily blocked|rate limit|verify that you're not|confirm you are human|has been blocked"
)
#: The same, said by a script.
CAPTCHA_SCRIPTS = (
    "g-recaptcha|h-captcha|hcaptcha.com|cf-chl|challenge-platform|px-captcha|_incapsula_resource|datadome"
    "|captcha-delivery.com|awswaf.com|cf-turnstile|perimeterx"
)
#: Sites in trouble.
ERROR = (
    "system unavailable|system is unavailable|system is currently unavailable|temporarily unavailable"
    "|currently unavailable|service unavailable|internal server error|server error in|runtime error|stack trace"
    "|traceback (most recent call last)|unhandled exception|an error has occurred|an error occurred"
    "|error occurred|unexpected error|application error|bad gateway|gateway time-out|gateway timeout"
    "|under maintenance|down for maintenance|undergoing maintenance|scheduled maintenance|routine maintenance"
    "|error executing database|fatal error|ole db provider|odbc|database error|try again later|site is down"
    "|server is too busy|query timeout|timeout expired|something went wrong|server error|microsoft vbscript"
    "|technical difficulties|not currently available|is not responding|session has expired|session expired"
    "|session timed out|invalid viewstate|unable to process your request|could not connect|connection failed"
    "|proxy error|unable to connect|currently down|is offline|error loading|there was an error|an exception"
    "|session has timed out|session timeout|system maintenance|performing maintenance|maintenance in progress"
    "|be back soon|temporarily down|could not be processed"
)
#: Sites that looked and found nothing.
NOT_FOUND = (
    "no records found|no record found|no records were found|no results found|no results were found|no matching"
    "|no matches|not found|does not exist|could not be found|no data found|no parcel found|no parcels found"
    "|invalid parcel|no property found|no properties found|0 records|no record matches|no results|unable to find"
    "|unable to locate|cannot be found|no information found|not a valid parcel|no such|no items found"
    "|no data available|did not match any|returned no|no records match|no records to display|no longer exists"
    "|no longer active|no records|was not located|no property match|no parcel match|no parcels match"
    "|no properties match|no account match|did not find any|did not yield any|has been retired|is retired"
    "|is inactive|parcel is no longer|no account found|no accounts found|nothing found|could not find|not on file"
    "|no parcel with|no property with|invalid account|invalid pin|invalid property|0 results|0 parcels found"
)
#: Pages that a script fills.
SHELL = (
    "enable javascript|javascript is disabled|id=\"root\"|id='root'|id=root|id=\"app\"|id='app'|id=app|<app-root"
    '|id="__next"'
)
