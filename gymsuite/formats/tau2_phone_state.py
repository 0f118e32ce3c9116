"""The phone of tau2's telecom domain: its settings, what is around it, what follows."""

from collections.abc import Mapping
from typing import Any

from gymsuite.formats.tau2_domain import Desk
from gymsuite.tools import ToolError

PREFERRED: Mapping[str, tuple[str, ...]] = {
    "4g_5g_preferred": ("5G", "4G"),
    "4g_only": ("4G",),
    "3g_only": ("3G",),
    "2g_only": ("2G",),
}
_AROUND: Mapping[str, Any] = {
    "name": None,
    "phone_number": None,
    "is_abroad": False,
    "roaming_allowed": False,
    "signal_strength": {"2G": "poor", "3G": "fair", "4G": "good", "5G": "excellent"},
    "mobile_data_usage_exceeded": False,
    "line_active": True,
    "payment_request": None,
}
_DEVICE: Mapping[str, Any] = {
    "sim_card_status": "active",
    "sim_card_missing": False,
    "airplane_mode": False,
    "network_signal_strength": "good",
    "network_technology_connected": "5G",
    "network_connection_status": "connected",
    "battery_level": 80,
    "data_enabled": True,
    "roaming_enabled": False,
    "network_mode_preference": "4g_5g_preferred",
    "wifi_enabled": False,
    "wifi_connected": False,
    "wifi_ssid": None,
    "wifi_signal_strength": "none",
    "wifi_calling_enabled": False,
    "wifi_calling_mms_over_wifi": False,
    "data_saver_mode": False,
    "vpn_enabled_setting": False,
    "vpn_connected": False,
    "vpn_details": None,
    "app_statuses": {},
}
APN: Mapping[str, Any] = {
    "apn_name": "internet",
    "reset_at_reboot": False,
    "mms_apn": "mms",
    "mmsc_url": "http://mms.carrier.com/mms/wapenc",
    "mms_proxy": None,
    "mms_port": None,
}
_MBPS: Mapping[str, float] = {"2G": 0.25, "3G": 3.0, "4G": 55.0, "5G": 275.0}
_FACTOR: Mapping[str, float] = {"poor": 0.2, "fair": 0.5, "good": 0.8, "excellent": 1.0}
_SPEEDS = ((1, "very poor"), (5, "poor"), (25, "fair"), (100, "good"))


def complete(desk: Desk) -> None:
    """Fill in what a phone has by default."""
    device = desk.user_db["device"] = {**_DEVICE, **desk.user_db.get("device", {})}
    device["active_apn_settings"] = {**APN, **device.get("active_apn_settings", {})}
    place = {**_AROUND, **desk.user_db.get("surroundings", {})}
    place["signal_strength"] = dict(place["signal_strength"])
    desk.user_db["surroundings"] = place


def search_network(desk: Desk) -> str:
    """Connect to what SIM, settings, line and place allow."""
    phone, place = phone_of(desk), around(desk)
    blocked = (
        phone["sim_card_missing"]
        or phone["sim_card_status"] != "active"
        or phone["airplane_mode"]
        or phone["active_apn_settings"]["apn_name"] == "broken"
        or not place["line_active"]
    )
    signals = place["signal_strength"]
    kinds = PREFERRED[phone["network_mode_preference"]]
    kind = next((k for k in kinds if signals.get(k, "none") != "none"), kinds[-1])
    phone |= {
        "network_connection_status": "no_service" if blocked else "connected",
        "network_technology_connected": "none" if blocked else kind,
        "network_signal_strength": "none" if blocked else signals.get(kind, "none"),
    }
    return phone["network_connection_status"]  # type: ignore[no-any-return]


def data_works(desk: Desk) -> bool:
    """Whether mobile data gets through."""
    phone, place = phone_of(desk), around(desk)
    if phone["airplane_mode"] or phone["network_signal_strength"] == "none":
        return False
    if phone["network_connection_status"] == "no_service" or not phone["data_enabled"]:
        return False
    allowed_abroad = phone["roaming_enabled"] and place["roaming_allowed"]
    if place["is_abroad"] and not allowed_abroad:
        return False
    return not place["mobile_data_usage_exceeded"]


def speed(desk: Desk) -> tuple[float, str]:
    """How fast mobile data is, in Mbps and in a word."""
    if not data_works(desk):
        return 0.0, "no connection"
    phone = phone_of(desk)
    details = phone["vpn_details"]
    slow = phone["vpn_connected"] and details and details["server_performance"] == "poor"
    mbps = _MBPS.get(phone["network_technology_connected"], 0.0)
    mbps *= _FACTOR.get(phone["network_signal_strength"], 0.0)
    mbps *= (0.1 if slow else 1.0) * (0.2 if phone["data_saver_mode"] else 1.0)
    mbps = round(mbps, 2)
    return mbps, next((word for limit, word in _SPEEDS if mbps < limit), "excellent")


def sends_mms(desk: Desk) -> bool:
    """Whether a picture message would go out."""
    phone = phone_of(desk)
    if not data_works(desk) or phone["network_technology_connected"] == "2G":
        return False
    if phone["wifi_calling_enabled"] and phone["wifi_calling_mms_over_wifi"]:
        return False
    rights = phone["app_statuses"].get("messaging", {}).get("permissions", {})
    has_url = phone["active_apn_settings"]["mmsc_url"] is not None
    return bool(has_url and rights.get("storage") and rights.get("sms"))


def phone_of(desk: Desk) -> dict[str, Any]:
    """The phone."""
    return desk.user_db["device"]  # type: ignore[no-any-return]


def around(desk: Desk) -> dict[str, Any]:
    """What is around it: the place, the line, a bill to pay."""
    return desk.user_db["surroundings"]  # type: ignore[no-any-return]


def sim_status(desk: Desk) -> str:
    """Whether the SIM card is there and unlocked."""
    phone = phone_of(desk)
    return "missing" if phone["sim_card_missing"] else str(phone["sim_card_status"])


def status_bar(desk: Desk) -> str:
    """What the phone's status bar shows."""
    phone = phone_of(desk)
    if phone["airplane_mode"]:
        signal = "airplane mode"
    else:
        kind = phone["network_technology_connected"]
        data = "data on" if phone["data_enabled"] and kind != "none" else "data off"
        saver = ", data saver" if phone["data_saver_mode"] else ""
        signal = f"signal {phone['network_signal_strength']}, network {kind}, {data}{saver}"
    vpn = ", VPN" if phone["vpn_connected"] else ""
    wifi = ", Wi-Fi" if phone["wifi_connected"] else ""
    return f"{signal}{wifi}{vpn}, battery {phone['battery_level']} %"


def change(desk: Desk, **settings: object) -> object:
    """Change settings and look for the network again."""
    phone_of(desk).update(settings)
    search_network(desk)
    name, value = next(iter(settings.items()))
    return {name: value, "status_bar": status_bar(desk)}


def toggle(desk: Desk, name: str, *, search: bool = True) -> object:
    """Turn a setting on or off."""
    phone = phone_of(desk)
    phone[name] = not phone[name]
    if search:
        search_network(desk)
    return {name: phone[name], "status_bar": status_bar(desk)}


def rights_of(desk: Desk, app_name: str) -> dict[str, bool]:
    """The permissions of an app; raises `ToolError` for one that is not there."""
    app = phone_of(desk)["app_statuses"].get(app_name)
    if app is None:
        raise ToolError(f"no app {app_name!r} on this phone")
    return app["permissions"]  # type: ignore[no-any-return]


def permit(desk: Desk, app_name: str, permission: str, *, granted: bool) -> object:
    """Grant or take a permission."""
    rights, name = rights_of(desk, app_name), permission.lower()
    if name not in rights:
        raise ToolError(f"no permission {permission!r}; there are: {', '.join(rights)}")
    rights[name] = granted
    return {"app_name": app_name, name: granted}
