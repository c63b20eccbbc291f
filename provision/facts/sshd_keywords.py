"""What sshd takes as the first word of a line, in lower case: sshd_config(5) from OpenSSH 7.4 to 10.0, with
the older names that are still read and the settings of Debian's, Ubuntu's and Red Hat's builds. Data only.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEYWORDS = _words("""
    acceptenv addressfamily allowagentforwarding allowgroups allowstreamlocalforwarding allowtcpforwarding
    allowusers authenticationmethods authorizedkeyscommand authorizedkeyscommanduser authorizedkeysfile
    authorizedprincipalscommand authorizedprincipalscommanduser authorizedprincipalsfile banner
    casignaturealgorithms challengeresponseauthentication channeltimeout chrootdirectory ciphers
    clientalivecountmax clientaliveinterval compression debianbanner denygroups denyusers disableforwarding
    exposeauthinfo fingerprinthash forcecommand gatewayports gssapiauthentication gssapicleanupcredentials
    gssapienablek5users gssapikexalgorithms gssapikeyexchange gssapistorecredentialsonrekey
    gssapistrictacceptorcheck hostbasedacceptedalgorithms hostbasedacceptedkeytypes hostbasedauthentication
    hostbasedusesnamefrompacketonly hostcertificate hostkey hostkeyagent hostkeyalgorithms ignorerhosts
    ignoreuserknownhosts include ipqos kbdinteractiveauthentication kerberosauthentication
    kerberosgetafstoken kerberosorlocalpasswd kerberosticketcleanup kerberosuniqueccache kerberosusekuserok
    kexalgorithms keyregenerationinterval listenaddress logingracetime loglevel logverbose macs match
    maxauthtries maxsessions maxstartups modulifile passwordauthentication permitemptypasswords permitlisten
    permitopen permitrootlogin permittty permittunnel permituserenvironment permituserrc
    persourcemaxstartups persourcenetblocksize persourcepenalties persourcepenaltyexemptlist pidfile port
    printlastlog printmotd protocol pubkeyacceptedalgorithms pubkeyacceptedkeytypes pubkeyauthentication
    pubkeyauthoptions rdomain refuseconnection rekeylimit requiredrsasize revokedkeys
    rhostsrsaauthentication rsaauthentication rsaminsize securitykeyprovider serverkeybits setenv
    skeyauthentication sshdauthpath sshdsessionpath streamlocalbindmask streamlocalbindunlink strictmodes
    subsystem syslogfacility tcpkeepalive trustedusercakeys unusedconnectiontimeout usedns uselogin usepam
    useprivilegeseparation versionaddendum x11displayoffset x11forwarding x11maxdisplays x11uselocalhost
    xauthlocation
""")
